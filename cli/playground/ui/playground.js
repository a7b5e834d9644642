// What a playground adds to the live page: buttons that kill replicas and start them. No replica serves this.

import { byId, element, keyed, say } from "/ui/dom.js";
import { Follower } from "/ui/follow.js";

const key = new URLSearchParams(location.hash.slice(1)).get("key") ?? "";

async function asked(path, method = "GET") {
  try {
    const answer = await fetch(`/playground/replicas${path}`, {
      method, headers: { "Quorate-Playground-Key": key }, cache: "no-store", credentials: "omit", redirect: "error",
    });
    const told = await answer.json();
    if (!answer.ok) return sayTrouble(told.detail ?? told.title);
    sayTrouble("");
    keyed(byId("playground-replicas"), told.replicas, (each) => each.id, newReplica, fillReplica);
    return true;
  } catch {
    return sayTrouble("the playground does not answer. Was it stopped?");
  }
}

function sayTrouble(words) {
  byId("playground-trouble").hidden = words === "";
  say(byId("playground-trouble"), `✕ ${words}`);
  return words === "";
}

function newReplica({ id }) {
  const button = element("button", { type: "button" });
  button.addEventListener("click", async () => {
    button.disabled = true; // A second press would be for what the button says next.
    await asked(`/${id}/${button.dataset.act}`, "POST");
    button.disabled = false;
    button.focus();
  });
  return button;
}

function fillReplica(button, { id, is_running: isRunning }) {
  button.dataset.act = isRunning ? "kill" : "start";
  say(button, isRunning ? `Kill ${id}` : `Start ${id}`);
}

function begin() {
  // The key stays in the memory of this page: in no history, and in no address that is passed on.
  history.replaceState(null, "", location.pathname + location.search);
  const title = element("h2", { id: "playground-title" }, "Playground");
  const steps = "Enqueue something by hand, kill a replica, and dequeue. The trace shows which logs hold what. Kill until no quorum is left; then start one again.";
  const list = element("div", { id: "playground-replicas", class: "buttons", role: "group", "aria-labelledby": "playground-title" });
  const trouble = element("p", { id: "playground-trouble", class: "help trouble", role: "alert", hidden: "" });
  const part = element("section", { id: "playground", class: "card", "aria-labelledby": "playground-title" },
    title, element("p", { class: "help" }, steps), list, trouble);
  document.querySelector(".parts").before(part);
  new Follower(() => asked("")).now();
}

begin();
