// Values as the text that they were stored in: reading and printing them again would spoil numbers above 2**53.

/** The value behind `{"value":` in an answer, as text. */
export function valueIn(answer) {
  return answer.slice('{"value":'.length, -1);
}

/** The values in an answer of the form `{"items":[…]}`, each as text. */
export function itemsIn(answer) {
  return parted(answer.slice('{"items":['.length, -"]}".length));
}

/** The leases in an answer of the form `{"leases":[{"item":…,"id":…}]}`: each with `value` as text, and what goes along. */
export function leasesIn(answer) {
  return recordsIn("leases", answer);
}

/** The dead letters in an answer of the form `{"letters":[{"item":…,"id":…}]}`, in the same way. */
export function lettersIn(answer) {
  return recordsIn("letters", answer);
}

function recordsIn(name, answer) {
  return parted(answer.slice(`{"${name}":[`.length, -"]}".length)).map((record) => {
    const [item, ...rest] = parted(record.slice(1, -1));
    return { ...JSON.parse(`{${rest.join(",")}}`), value: item.slice('"item":'.length) };
  });
}

/** What stands between the commas of a JSON text, but for those within a string, a list or an object. */
function parted(list) {
  const parts = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at < list.length; at += 1) {
    const char = list[at];
    if (char === '"') at = endOfString(list, at);
    else if (char === "[" || char === "{") depth += 1;
    else if (char === "]" || char === "}") depth -= 1;
    else if (char === "," && depth === 0) {
      parts.push(list.slice(start, at));
      start = at + 1;
    }
  }
  if (list) parts.push(list.slice(start));
  return parts;
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
