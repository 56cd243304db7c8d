/** Actions that take longer than a request: each is a request to the ingest thread, or a command in its own process. */
import { setTimeout as sleep } from 'node:timers/promises';
import { runCommand } from '../../backup/backup-process.ts';
import { counted, grouped } from '../../counted.ts';
import type { ExportName } from '../../detection/content-type.ts';
import { actorText } from '../../history/actor.ts';
import { noteOperation } from '../../history/operation-note.ts';
import {
  addRequest,
  type IngestRequest,
  type RequestOutcome,
  requestState,
} from '../../ingest/requests/requests.ts';
import { RELEASES, type Release, requireStatus } from '../../ingest/requests/window-release.ts';
import { Refused } from '../../refused.ts';
import { formatMs } from '../../time.ts';
import { findWindow } from '../../windows/ledger.ts';
import { type Acting, changeAccess } from './acting.ts';
import type { ActionResult, Job } from './api.ts';
import type { JobEnd } from './jobs.ts';

interface Window {
  readonly export: ExportName;
  /** Epoch milliseconds. */
  readonly window_start: number;
}

const POLL_EVERY_MS = 100;

/** @param period when the files were first applied, epoch milliseconds, `[from, to)` */
export function replay(
  acting: Acting,
  { from, to }: { readonly from: number; readonly to: number },
): ActionResult {
  if (from >= to) throw new Refused('invalid_request', 'from: it must be before to');
  return beginRequest(acting, { kind: 'ingest-replay', subject: '' }, { kind: 'replay', from, to });
}

export function release(acting: Acting, window: Window, name: Release['name']): ActionResult {
  const wanted = RELEASES.find((one) => one.name === name);
  if (wanted === undefined) throw new Error(`there is no release ${name}`);
  const { export: exportName, window_start: start } = window;
  const found = findWindow(acting.sources.detections(), exportName, start);
  requireStatus(found?.status, wanted, exportName, start);
  const job = { kind: `window-${name}`, subject: subjectOf(window) } as const;
  return beginRequest(acting, job, { kind: 'reset', ...window, from: wanted.from });
}

export function expect(acting: Acting, window: Window): ActionResult {
  if (window.window_start > acting.nowMs)
    throw new Refused('invalid_request', 'window_start: the window has not begun: expected one that has');
  const job = { kind: 'window-expect', subject: subjectOf(window) } as const;
  return beginRequest(acting, job, { kind: 'expect', ...window });
}

function subjectOf({ export: exportName, window_start }: Window): string {
  return `${exportName} ${formatMs(window_start)}`;
}

type JobName = Pick<Job, 'kind' | 'subject'>;

/** Writes the request where the ingest thread finds it, and waits for its outcome. */
function beginRequest(acting: Acting, job: JobName, request: IngestRequest): ActionResult {
  const { sources, by, nowMs } = acting;
  sources.jobs.requireNotRunning(job);
  const id = changeAccess(acting, (access) => addRequest(access, request, nowMs));
  const begun = sources.jobs.begin({ ...job, by: actorText(by) }, nowMs, async (onProgress) => {
    for (let shown: string | null = null; ; ) {
      const { progress, outcome } = requestState(sources.access(), id);
      if (outcome !== null) return endOf(outcome, job.subject);
      if (progress !== null && progress !== shown) onProgress(progress);
      shown = progress;
      await sleep(POLL_EVERY_MS);
    }
  });
  return { text: 'Begun.', job: begun };
}

function endOf(outcome: RequestOutcome, subject: string): JobEnd {
  if (!outcome.ok) return { ok: false, text: outcome.reason };
  if ('reset' in outcome) {
    const { file, outcome: what, reason } = outcome.reset;
    const ok = what !== 'failed';
    return { ok, text: ok ? `${file}: ${what}.` : `${file} failed: ${reason}. See the reason beside it.` };
  }
  if ('expected' in outcome)
    return {
      ok: true,
      text: `Windows are expected from ${subject} on; ${counted(outcome.expected.forgotten, 'earlier window')} no longer count as missing.`,
    };
  if ('replay' in outcome) {
    const { files, rows, created, updated, unreadable } = outcome.replay;
    const [first] = unreadable;
    const but =
      first === undefined
        ? ''
        : ` ${counted(unreadable.length, 'file')} could not be read, first ${first.file}: ${first.reason}.`;
    const text = `Read ${counted(files, 'file')} with ${counted(rows, 'row')} again: ${counted(created, 'detection')} created, ${grouped(updated)} updated.${but}`;
    return { ok: first === undefined, text };
  }
  return { ok: true, text: 'Done.' };
}

/** Updates the folder of the scheduled backup. */
export function backUp(acting: Acting): ActionResult {
  const { data, drop, backup } = acting.sources.settings;
  const { folder, keep_days } = backup;
  const args = ['backup', folder, '--data', data, '--drop', drop, '--keep-days', `${keep_days}`];
  return beginCommand(acting, 'backup', args, ({ written, path }) => ({
    ok: true,
    text: `${path} is up to date: ${grouped(Number(written))} bytes written.`,
  }));
}

/** Compares the databases with their logs. */
export function verify(acting: Acting): ActionResult {
  const args = ['verify', '--data', acting.sources.settings.data];
  return beginCommand(acting, 'scrub', args, ({ ok, findings, not_compared }) => {
    if (ok === true) return { ok, text: 'The databases match their logs.' };
    const count = Array.isArray(findings) ? findings.length : 0;
    const text =
      count > 0
        ? `${counted(count, 'kind')} of damage found. Run wirewatch verify to see all.`
        : `Not everything could be compared: ${not_compared}.`;
    return { ok: false, text };
  });
}

/** @param endOfRun of what the command printed */
function beginCommand(
  acting: Acting,
  kind: 'backup' | 'scrub',
  args: readonly string[],
  endOfRun: (printed: Readonly<Record<string, unknown>>) => JobEnd,
): ActionResult {
  const { sources, by, nowMs } = acting;
  const job = { kind, subject: '' };
  sources.jobs.requireNotRunning(job);
  changeAccess(acting, (access) => noteOperation(access, { kind }, nowMs));
  const begun = sources.jobs.begin({ ...job, by: actorText(by) }, nowMs, async () => {
    const process = runCommand(args);
    sources.jobs.keep(process);
    const outcome = await process.outcome;
    return outcome.kind === 'failed' ? { ok: false, text: outcome.detail } : endOfRun(outcome.printed);
  });
  return { text: 'Begun.', job: begun };
}
