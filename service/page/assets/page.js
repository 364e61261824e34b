"use strict";
// Replaces the changing part of the page by what the server sends. The server made it
// from its own templates, with everything escaped.
const live = document.getElementById("live");
if (live) {
  const events = new EventSource(live.dataset.from);
  events.onmessage = (e) => {
    live.innerHTML = JSON.parse(e.data);
    live.dataset.updates = Number(live.dataset.updates || 0) + 1;
  };
}
