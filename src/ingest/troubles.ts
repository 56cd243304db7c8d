/**
 * What keeps the ingesting thread from its work at the moment. It is told to the main thread when it changes,
 * and becomes an alert there: in memory, since neither a full disk nor a damaged database can take a note.
 */
export const TROUBLE_NAMES = [
  'disk full',
  'drop folder not readable',
  'drop folder not writable',
  'file stuck',
  'end of log lost',
] as const;
export type TroubleName = (typeof TROUBLE_NAMES)[number];

export class Troubles {
  readonly #tell: (name: TroubleName, detail: string | null) => void;
  readonly #open = new Map<TroubleName, string>();

  /** @param tell with null once it is over */
  constructor(tell: (name: TroubleName, detail: string | null) => void) {
    this.#tell = tell;
  }

  set(name: TroubleName, detail: string | null): void {
    if ((this.#open.get(name) ?? null) === detail) return;
    if (detail === null) this.#open.delete(name);
    else this.#open.set(name, detail);
    this.#tell(name, detail);
  }
}
