/**
 * When a dropped file is ready to be read (pure): it did not change for `quiet_ms`, its window has ended, and if it looks
 * cut off, it had `truncated_seconds` to grow. Times that the file carries do not count: copying tools set them.
 */
import { type ExportFileName, type OwnNames, windowReadiness } from '../exports/file-name.ts';
import { SECOND_MS, WINDOW_MS } from '../time.ts';
import type { Named } from './waiting-names.ts';

/** `file_names`: other names of export files; without it, there are none. */
export type DropSettings = Readonly<{ quiet_ms: number; truncated_seconds: number; file_names?: OwnNames }>;

/** `isFinal`: its time to grow is over, so that it is damaged if it is truncated. */
export type Readiness =
  | { readonly kind: 'export'; readonly file: ExportFileName; readonly isFinal: boolean }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'wait'; readonly waitMs: number };

/** @param seen `isTruncated`: it was read in this state, and its compressed data was cut off */
export function readiness(
  named: Named,
  seen: { readonly size: bigint; readonly unchangedMs: number; readonly isTruncated: boolean },
  settings: DropSettings,
  nowMs: number,
): Readiness {
  const { unchangedMs } = seen;
  if (unchangedMs < settings.quiet_ms) return { kind: 'wait', waitMs: settings.quiet_ms - unchangedMs };
  if (named.kind === 'refused') return { kind: 'refused', reason: named.reason };
  const { file } = named;
  if (file.window_start !== null) {
    const due = windowReadiness(file.window_start, nowMs);
    if (due === 'too far ahead') {
      const reason =
        'the window is more than a day in the future. The name must contain the start of the window in UTC; also check the clocks of the writer and of this machine';
      return { kind: 'refused', reason };
    }
    if (due === 'early') return { kind: 'wait', waitMs: file.window_start + WINDOW_MS - nowMs };
  }
  // Only time tells a file that is empty on purpose from one that is about to be written.
  const needsTime = seen.isTruncated || (seen.size === 0n && !/\.(gz|zst)$/.test(file.name));
  const restMs = settings.truncated_seconds * SECOND_MS - unchangedMs;
  if (needsTime && restMs > 0) return { kind: 'wait', waitMs: restMs };
  return { kind: 'export', file, isFinal: restMs <= 0 };
}
