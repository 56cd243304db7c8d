/** A reset or an accept: reads a window which is waiting for the operator. */
import type { ExportName } from '../../detection/content-type.ts';
import { Refused } from '../../refused.ts';
import { formatMs } from '../../time.ts';
import type { WindowStatus } from '../../windows/ledger.ts';
import { statusPhrase } from '../../windows/window-states.ts';
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

/** @throws Refused `failed` if the release is not for windows with this status; names the one that is */
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
  const only = `only ${from === 'failed' ? 'a failed' : 'an abandoned'} window can be ${name === 'reset' ? 'reset' : 'accepted'}`;
  throw new Refused('failed', `the window ${window} ${statusPhrase(status)}: ${only}. ${next}`);
}
