/** Registers secrets, and searches for them where they must not occur. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

/** A truncated or changed secret still starts or ends with the same characters. */
const END_CHARACTERS = 20;
const FOUND_MAX = 20;
const BEFORE_CHARACTERS = 120;

export class Secrets {
  readonly #needles: { readonly what: string; readonly text: string }[] = [];
  readonly #found = new Map<string, string>();
  planted = 0;
  searched = 0;

  /** One sentence per secret found, without the secret. */
  get found(): string[] {
    return [...this.#found.values()];
  }

  /** Registers a secret. @param text only the secret part: at least 20 characters that occur nowhere else */
  plant(what: string, text: string): void {
    if (text.length < END_CHARACTERS)
      throw new Error(`${what}: expected ${END_CHARACTERS} characters or more`);
    this.planted += 1;
    const ends = [text.slice(0, END_CHARACTERS), text.slice(-END_CHARACTERS)];
    for (const end of new Set(ends)) this.#needles.push({ what, text: end.toLowerCase() });
  }

  /** Searches a text sent to a client, an operator or the log. */
  search(where: string, text: string): void {
    this.searched += 1;
    const lower = text.toLowerCase();
    for (const needle of this.#needles) {
      const at = lower.indexOf(needle.text);
      // Reported once: a complete secret matches at both ends.
      const place = `${needle.what} is in ${where}`;
      if (at < 0 || this.#found.size >= FOUND_MAX || this.#found.has(place)) continue;
      this.#found.set(place, `${place}, after: ${text.slice(Math.max(0, at - BEFORE_CHARACTERS), at)}`);
    }
  }

  /** Searches names and contents of all files below a folder. @param mayHold names of files that may contain secrets */
  searchFolder(folder: string, mayHold: readonly string[] = []): void {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      this.search('the name of a file', path);
      if (!entry.isFile() || mayHold.includes(basename(path))) continue;
      this.search(relative(folder, path), readFileSync(path, 'latin1'));
    }
  }
}
