/** Who did something, as the access log names it: part of the audit trail. */

export interface Actor {
  /** The user of the operating system. */
  readonly actor: string;
  /** The user behind sudo, as sudo says. */
  readonly sudo_user?: string;
  /** The name that the link of a console gives (`--as`). Nobody has checked it. */
  readonly as?: string;
}

type Shown = { readonly [Name in keyof Actor]: Actor[Name] | null };

/** `root (alice) as "Ada Lovelace"`: what nobody has checked is quoted, and never stands for the user. */
export function actorText({ actor, sudo_user = null, as = null }: Shown): string {
  const sudo = sudo_user === null ? '' : ` (${sudo_user})`;
  return `${actor ?? 'wirewatch'}${sudo}${as === null ? '' : ` as ${JSON.stringify(as)}`}`;
}
