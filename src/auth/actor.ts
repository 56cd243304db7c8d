/** Who did something, as the audit trail names it. */

export interface Actor {
  /** The user of the operating system. */
  readonly actor: string;
  /** The user behind sudo, as sudo says. */
  readonly sudo_user?: string;
  /** The name that the link of a console gives (`--as`). Nobody has checked it. */
  readonly as?: string;
}

/** What is being done, and by whom; without secrets. */
export interface Doing extends Partial<Actor> {
  /** `command`, `console`, `api`; `start`: by the configuration. */
  readonly kind: string;
  readonly command?: string;
}

type Shown = { readonly [Name in keyof Actor]: Actor[Name] | null };

/** `root (alice) as "Ada Lovelace"`: what nobody has checked is quoted, and never stands for the user. */
export function actorText({ actor, sudo_user = null, as = null }: Shown): string {
  const sudo = sudo_user === null ? '' : ` (${sudo_user})`;
  return `${actor ?? 'wirewatch'}${sudo}${as === null ? '' : ` as ${JSON.stringify(as)}`}`;
}
