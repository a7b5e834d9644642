// Values as the text that they were stored in: reading and printing them again would spoil numbers above 2**53.

/** The value behind `{"value":` in an answer, as text. */
export function valueIn(answer) {
  return answer.slice('{"value":'.length, -1);
}

/** The values in an answer of the form `{"items":[…]}`, each as text. */
export function itemsIn(answer) {
  const list = answer.slice('{"items":['.length, -"]}".length);
  const items = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at < list.length; at += 1) {
    const char = list[at];
    if (char === '"') at = endOfString(list, at);
    else if (char === "[" || char === "{") depth += 1;
    else if (char === "]" || char === "}") depth -= 1;
    else if (char === "," && depth === 0) {
      items.push(list.slice(start, at));
      start = at + 1;
    }
  }
  if (list) items.push(list.slice(start));
  return items;
}

function endOfString(text, start) {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at;
}

/** Why a text is no JSON value, in a sentence; empty when it is one. */
export function troubleWith(text) {
  if (text.trim() === "") return 'Give a value; the empty text is "".';
  try {
    JSON.parse(text);
    return "";
  } catch {
    const plain = !/[[\]{}"\\]/.test(text);
    return plain ? `This is not JSON. For that text, write ${JSON.stringify(text.trim())}.` : "This is not JSON.";
  }
}
