/** What lets a window be read again that waits for the operator's word: a reset, or for an abandoned one an accept. */
import type { ExportName } from '../detection/content-type.ts';
import { Refused } from '../refused.ts';
import { formatMs } from '../time.ts';
import type { WindowStatus } from '../windows/ledger.ts';
import type { ResettableStatus } from './requests.ts';

export interface Release {
  readonly name: 'reset' | 'accept';
  /** The status of the windows that it is for. */
  readonly from: ResettableStatus;
}

export const RELEASES: readonly Release[] = [
  { name: 'reset', from: 'failed' },
  { name: 'accept', from: 'abandoned' },
];

/** @throws Refused `failed` when the release is not for a window in this status, with the one that is */
export function requireStatus(
  status: WindowStatus | undefined,
  { name, from }: Release,
  exportName: ExportName,
  start: number,
): void {
  if (status === from) return;
  const window = `${exportName} ${formatMs(start)}`;
  const right = RELEASES.find((release) => release.from === status);
  const next =
    right === undefined
      ? `See: wirewatch window list ${exportName} --status ${from}`
      : `Run: wirewatch window ${right.name} ${window}`;
  const only = `only ${from === 'failed' ? 'a failed' : 'an abandoned'} one can be ${name === 'reset' ? 'reset' : 'accepted'}`;
  throw new Refused('failed', `the window ${window} is ${status ?? 'not known'}: ${only}. ${next}`);
}
