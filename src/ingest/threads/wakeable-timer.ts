/** Sleep that ends early when something happens, also when that was before it began. */
export class Sleeper {
  #isWoken = false;
  #end: () => void = () => {};

  /** What happens from here on ends the next sleep. */
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
