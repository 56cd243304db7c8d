/** Who is logged in: by a link that works once, for as long as the session holds. */
import { html } from 'htm/preact';
import { createContext, type VNode } from 'preact';
import { useContext } from 'preact/hooks';
import type { Session } from '../admin/console/api.ts';
import { Code, Mark } from './parts.ts';
import { Failure, SESSION, send } from './server.ts';

export const SessionContext = createContext<Session | null>(null);

/** Whether actions are left out. */
export function useIsReadOnly(): boolean {
  return useContext(SessionContext)?.read_only ?? true;
}

const LINK = /^#login=(.+)$/;

export function isLink(): boolean {
  return LINK.test(location.hash);
}

/** Redeems the link by which the page was opened, and takes its token out of the address. @returns what failed; null: nothing */
export async function redeemLink(): Promise<string | null> {
  const [, token] = LINK.exec(location.hash) ?? [];
  if (token === undefined) return null;
  history.replaceState(null, '', '/');
  try {
    await send(SESSION, { token });
    return null;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return error.status === 401 ? 'This link was used already, or is older than ten minutes.' : error.message;
  }
}

export function SignedOut({ reason }: { reason: string | null }): VNode {
  return html`<main class="signed-out">
    <h1>Wirewatch</h1>
    ${reason !== null && html`<p class="failure" role="alert"><${Mark} name="failed" /> ${reason}</p>`}
    <p>To log in, have a link printed on the machine that runs Wirewatch. It works once, for ten minutes.</p>
    <${Code} text="wirewatch console" label="the command" />
    <p class="soft">With <code>--read-only</code>, the session can look but change nothing. With <code>--as NAME</code>, its actions carry that name in the audit trail.</p>
  </main>`;
}
