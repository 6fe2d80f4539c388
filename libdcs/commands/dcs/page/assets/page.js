// Follows the pool: replaces the panels that have changed. Without it the page reloads itself.
(() => {
  "use strict";
  // On a narrow screen the time line shows now, not an hour ago.
  document.querySelectorAll("#time .scroll").forEach((box) => { box.scrollLeft = box.scrollWidth; });
  const live = document.getElementById("live");
  let known = document.body.dataset.live;
  if (!live || !known) return;
  const stale_ms = 45000;
  let heard = Date.now();

  const say = (text, stale) => {
    if (live.textContent !== text) live.textContent = text;
    live.classList.toggle("stale", stale);
  };

  // What is replaced under the reader's hands stays as it was left: focus, and how far a box is scrolled.
  const replace = (panel, html) => {
    const links = () => Array.from(panel.querySelectorAll("a, [tabindex]"));
    const focused = links().indexOf(document.activeElement);
    const href = focused >= 0 ? document.activeElement.getAttribute("href") : null;
    const boxes = () => Array.from(panel.querySelectorAll(".scroll, .events"));
    const scrolled = boxes().map((box) => [box.scrollLeft, box.scrollTop]);
    panel.innerHTML = html;
    boxes().forEach((box, i) => { if (scrolled[i]) [box.scrollLeft, box.scrollTop] = scrolled[i]; });
    if (focused < 0) return;
    const now = links();
    const same = href === null ? now[focused] : now.find((link) => link.getAttribute("href") === href);
    if (same) same.focus({ preventScroll: true });
  };

  const follow = () => {
    const source = new EventSource("/events?since=" + encodeURIComponent(known));
    source.addEventListener("panels", (event) => {
      known = event.lastEventId;
      heard = Date.now();
      for (const [id, html] of Object.entries(JSON.parse(event.data))) {
        const panel = document.getElementById(id);
        if (panel) replace(panel, html);
      }
      say("live", false);
    });
    source.onerror = () => {
      say("not connected: dcs page has ended, or is busy", true);
      if (source.readyState !== EventSource.CLOSED) return;  // it connects again by itself
      setTimeout(follow, 10000);
    };
  };

  setInterval(() => {
    if (Date.now() - heard > stale_ms) say("no news since " + new Date(heard).toLocaleTimeString(), true);
  }, 5000);
  follow();
})();
