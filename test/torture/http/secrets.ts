/** Registers secrets, and searches for them where they must not occur. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

export interface Secrets {
  /** Registers a secret. @param text only the secret part: at least 20 characters that occur nowhere else */
  plant(what: string, text: string): void;
  /** Searches a text sent to a client, an operator or the log. */
  search(where: string, text: string): void;
  /**
   * Searches the names and contents of all files below a folder. @param mayHold names of files that may contain secrets
   */
  searchFolder(folder: string, mayHold?: readonly string[]): void;
  readonly planted: number;
  /** Texts and files searched. */
  readonly searched: number;
  /** One sentence per secret found, without the secret. */
  readonly found: readonly string[];
}

/** A truncated or changed secret still starts or ends with the same characters. */
const END_CHARACTERS = 20;
const FOUND_MAX = 20;
const BEFORE_CHARACTERS = 120;

export function createSecrets(): Secrets {
  const needles: { readonly what: string; readonly text: string }[] = [];
  const found = new Map<string, string>();
  let planted = 0;
  let searched = 0;

  function search(where: string, text: string): void {
    searched += 1;
    const lower = text.toLowerCase();
    for (const needle of needles) {
      const at = lower.indexOf(needle.text);
      if (at < 0 || found.size >= FOUND_MAX) continue;
      // Report it once: a complete secret matches at both ends.
      const place = `${needle.what} ${where}`;
      if (!found.has(place))
        found.set(
          place,
          `${needle.what} is in ${where}, after: ${text.slice(Math.max(0, at - BEFORE_CHARACTERS), at)}`,
        );
    }
  }

  return {
    plant(what, text) {
      if (text.length < END_CHARACTERS)
        throw new Error(`${what}: expected ${END_CHARACTERS} characters or more`);
      planted += 1;
      const ends = [text.slice(0, END_CHARACTERS), text.slice(-END_CHARACTERS)];
      for (const end of new Set(ends)) needles.push({ what, text: end.toLowerCase() });
    },
    search,
    searchFolder(folder, mayHold = []) {
      for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name);
        search('the name of a file', path);
        if (!entry.isFile() || mayHold.includes(basename(path))) continue;
        search(relative(folder, path), readFileSync(path, 'latin1'));
      }
    },
    get planted() {
      return planted;
    },
    get searched() {
      return searched;
    },
    get found() {
      return [...found.values()];
    },
  };
}
