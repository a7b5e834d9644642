// Asks again and again, with a bound: never two at a time, never oftener than once a second, more and more seldom while
// there is no answer, and not at all while nobody looks.

const EVERY_MS = 1000;
const SELDOM_MS = 10000;

/** Runs `work(signal)`, which says whether it got an answer, until paused or hidden. */
export class Follower {
  constructor(work) {
    this.work = work;
    this.paused = false;
    this.wait = EVERY_MS;
    this.timer = null;
    this.running = null;
    document.addEventListener("visibilitychange", () => (document.hidden || this.paused ? this.stop() : this.soon()));
  }

  /** Follow, or rest. */
  pause(paused) {
    this.paused = paused;
    if (paused) this.stop();
    else this.soon();
  }

  /** Ask now, even while paused: once, then as before. */
  async now() {
    this.stop();
    await this.ask();
  }

  stop() {
    clearTimeout(this.timer);
    this.running?.abort();
    this.running = null;
  }

  soon() {
    this.stop();
    this.timer = setTimeout(() => this.ask(), 0);
  }

  async ask() {
    if (document.hidden) return;
    const running = new AbortController();
    this.running = running;
    const answered = await this.work(running.signal);
    if (this.running !== running) return; // Another one has begun, or nobody looks any more.
    this.running = null;
    this.wait = answered ? EVERY_MS : Math.min(2 * this.wait, SELDOM_MS);
    if (!this.paused) this.timer = setTimeout(() => this.ask(), this.wait);
  }
}
