"use strict";
// Brings the changing part of the page to what the server sends, node by node: what has
// the focus, is pressed, selected or opened stays the same element. The server made the
// HTML from its own templates, with everything escaped.
const live = document.getElementById("live");
const cut = document.getElementById("cut");

function attributes(at, next) {
  for (const { name } of [...at.attributes]) {
    const kept = name === "open" && at.nodeName === "DETAILS";
    if (!next.hasAttribute(name) && !kept) at.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (at.getAttribute(name) !== value) at.setAttribute(name, value);
  }
}

function bring(parent, to) {
  let at = parent.firstChild;
  for (const next of [...to.childNodes]) {
    if (next.id) { // what it had of that name, and nothing before it
      let found = at;
      while (found && found.id !== next.id) found = found.nextSibling;
      while (found && at !== found) {
        const gone = at;
        at = at.nextSibling;
        gone.remove();
      }
    }
    if (!at || at.nodeName !== next.nodeName || (at.id || "") !== (next.id || "")) {
      parent.insertBefore(next, at);
    } else {
      if (at.nodeType !== Node.ELEMENT_NODE) {
        if (at.data !== next.data) at.data = next.data;
      } else {
        attributes(at, next);
        bring(at, next);
      }
      at = at.nextSibling;
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

// While a button is pressed nothing moves: what is sent meanwhile is shown once it is released, and
// the click has been dealt with.
let pressed = false;
let held = null;

function show(html) {
  if (pressed) {
    held = html;
    live.dataset.held = "";
    return;
  }
  bring(live, new DOMParser().parseFromString(html, "text/html").body);
  live.dataset.updates = Number(live.dataset.updates || 0) + 1;
}

function released() {
  setTimeout(() => {
    pressed = false;
    if (held === null) return;
    const html = held;
    held = null;
    delete live.dataset.held;
    show(html);
  }, 0);
}

function follow() {
  const events = new EventSource(live.dataset.from);
  events.onmessage = (e) => {
    cut.hidden = true;
    show(JSON.parse(e.data));
  };
  events.onerror = () => {
    if (cut.hidden) {
      const now = new Date().toISOString().slice(11, 19);
      cut.lastElementChild.textContent = "This page has had no word from its node since " + now +
        " UTC: what it shows is from before.";
      cut.hidden = false;
    }
    if (events.readyState === EventSource.CLOSED) setTimeout(follow, 3000);
  };
}
if (live) {
  addEventListener("pointerdown", () => { pressed = true; });
  addEventListener("pointerup", released);
  addEventListener("pointercancel", released);
  follow();
}
