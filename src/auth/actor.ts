/** Who did something, as the audit trail names it. */

/**
 * `actor`: the user of the operating system; `sudo_user`: the one behind sudo, as sudo says; `as`: the name that the link of
 * a console gives (`--as`), which nobody has checked.
 */
export type Actor = Readonly<{ actor: string; sudo_user?: string; as?: string }>;

/** What is being done, and by whom; without secrets. `kind`: `command`, `console`, `api`; `start`: by the configuration. */
export type Doing = Partial<Actor> & Readonly<{ kind: string; command?: string }>;

type Shown = { readonly [Name in keyof Actor]: Actor[Name] | null };

/** `root (alice) as "Ada Lovelace"`: what nobody has checked is quoted, and never stands for the user. */
export function actorText({ actor, sudo_user = null, as = null }: Shown): string {
  const sudo = sudo_user === null ? '' : ` (${sudo_user})`;
  return `${actor ?? 'wirewatch'}${sudo}${as === null ? '' : ` as ${JSON.stringify(as)}`}`;
}
