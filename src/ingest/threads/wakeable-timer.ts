/** A sleep that {@link WakeableTimer.wake} ends early, even if it came after `begin` and before the sleep. */
export class WakeableTimer {
  #isWoken = false;
  #end: () => void = () => {};

  /** Wakes from here on end the next sleep. */
  begin(): void {
    this.#isWoken = false;
  }

  wake(): void {
    this.#isWoken = true;
    this.#end();
  }

  sleep(ms: number): Promise<void> {
    if (this.#isWoken) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#end = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
