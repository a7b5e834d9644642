// Tables that are wider than their boxes: a hint in words above, and a shade at the edge behind which there is more.

import { element } from "./dom.js";

/** Have a box that scrolls sideways say so while it is too narrow for what is in it. */
export function hinted(box) {
  const hint = element("p", { class: "hint", "aria-hidden": "true", hidden: "" }, "Scroll sideways for more →");
  box.before(hint);
  const look = () => {
    const beyond = box.scrollWidth - box.clientWidth;
    hint.hidden = beyond <= 1;
    box.classList.toggle("more", beyond - box.scrollLeft > 1);
  };
  box.addEventListener("scroll", look, { passive: true });
  const sizes = new ResizeObserver(look);
  for (const each of [box, ...box.children]) sizes.observe(each);
}
