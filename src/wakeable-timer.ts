/** A sleep that {@link WakeableTimer.wake} ends early, even if it came after `begin` and before the sleep. */
import { setTimeout as sleep } from 'node:timers/promises';

export class WakeableTimer {
  #waking = new AbortController();

  begin(): void {
    this.#waking = new AbortController();
  }

  wake(): void {
    this.#waking.abort();
  }

  async sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#waking.signal }).catch(() => {});
  }
}
