// Pages that follow what happens: the part marked data-live is asked for again and changed in place, so that what
// somebody has opened, marked or focused stays. Without this script a page shows how it was when it was loaded.

const EVENTS = [
  "entry.created", "entry.updated", "entry.deleted", "entry.rolled_back", "entry.approved", "entry.applied",
  "run.created", "run.pending", "run.running", "run.stopping", "run.stopped", "run.done", "run.failed", "run.lost", "run.event",
];
const LEAST = 1000; // a burst of events is one look

function change(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open" && name !== "class") old.removeAttribute(name);
  }
  changeAll(old, fresh);
}

function changeAll(old, fresh) {
  const known = new Map([...old.children].filter((one) => one.id).map((one) => [one.id, one]));
  let place = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const isAlike = place && place.nodeName === next.nodeName && !place.id && !next.id;
    const same = next.id ? known.get(next.id) : isAlike ? place : undefined;
    if (!same) {
      old.insertBefore(next, place);
      if (next.id) next.classList.add("fresh");
      continue;
    }
    if (same === place) place = place.nextSibling;
    else old.insertBefore(same, place);
    change(same, next);
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

class Follower {
  constructor(part) {
    this.part = part;
    this.every = Number(part.dataset.live) || 3000;
    this.bar = document.querySelector("[data-live-bar]");
    this.isPaused = false;
    this.before = "";
    this.looked = 0;
    if (this.bar) {
      this.bar.hidden = false;
      this.button = this.bar.querySelector("button");
      this.button.addEventListener("click", () => this.pause());
    }
    document.addEventListener("visibilitychange", () => this.wake());
    this.wake();
  }

  say(text) {
    if (this.bar) this.bar.querySelector("[data-live-state]").textContent = text;
  }

  pause() {
    this.isPaused = !this.isPaused;
    this.button.textContent = this.isPaused ? "Go on" : "Pause";
    this.say(this.isPaused ? "paused" : "live");
    this.wake();
  }

  // Nobody looks at a hidden page: it asks for nothing and holds no connection.
  wake() {
    const isAwake = !document.hidden && !this.isPaused;
    if (isAwake && "liveEvents" in this.part.dataset && !this.source) {
      this.source = new EventSource("/ui/live");
      for (const kind of EVENTS) this.source.addEventListener(kind, (event) => this.hear(event));
    } else if (!isAwake && this.source) {
      this.source.close();
      this.source = null;
    }
    clearTimeout(this.timer);
    if (isAwake) this.timer = setTimeout(() => this.look(), this.before ? this.every : 0);
  }

  hear(event) {
    if (!event.data.includes(this.part.dataset.liveEvents)) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), Math.max(50, this.looked + LEAST - Date.now()));
  }

  async look() {
    this.looked = Date.now();
    try {
      const answer = await fetch(location.href, { headers: { "x-part": "live" } });
      if (answer.status === 401) return this.say("signed out: load the page again");
      if (answer.ok && !this.isPaused) this.show(await answer.text());
      this.say(answer.ok ? "live" : "not answered, tried again");
    } catch {
      this.say("not reachable, tried again");
    }
    this.wake();
  }

  show(text) {
    if (text === this.before) return;
    this.before = text;
    const fresh = document.createElement("template");
    fresh.innerHTML = text;
    changeAll(this.part, fresh.content);
  }
}

for (const part of document.querySelectorAll("[data-live]")) new Follower(part);
