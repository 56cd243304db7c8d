/** Actions that take longer than a request: asked of the ingest thread, or run as a command of their own. */
import { setTimeout as sleep } from 'node:timers/promises';
import { runCommand } from '../../backup/backup-process.ts';
import { counted, grouped } from '../../counted.ts';
import { noteOperation } from '../../history/operation-note.ts';
import {
  addRequest,
  type IngestRequest,
  type RequestOutcome,
  requestState,
} from '../../ingest/requests/requests.ts';
import { Refused } from '../../refused.ts';
import type { Database } from '../../store/database.ts';
import type { ActionResult, Job } from './api.ts';
import type { JobEnd } from './jobs.ts';
import type { Sources } from './sources.ts';

/** Of an action. */
interface Beginning {
  readonly sources: Sources;
  readonly by: string;
  readonly nowMs: number;
}

/** Changes access.db under the person's name. */
type Changing<Of extends Beginning> = <Result>(of: Of, work: (access: Database) => Result) => Result;

const LOOK_EVERY_MS = 100;

/** Puts the request where the ingest thread finds it, and follows it to its end. */
export function beginRequest<Of extends Beginning>(
  acting: Of,
  changing: Changing<Of>,
  what: Pick<Job, 'kind' | 'subject'> & { readonly request: IngestRequest },
): ActionResult {
  const { sources, by, nowMs } = acting;
  const { request, ...job } = what;
  requireNotRunning(sources, job);
  const id = changing(acting, (access) => addRequest(access, request, nowMs));
  const begun = sources.jobs.begin({ ...job, by }, nowMs, async (onProgress) => {
    for (let shown: string | null = null; ; ) {
      const { progress, outcome } = requestState(sources.access(), id);
      if (outcome !== null) return endOf(outcome, job.subject);
      if (progress !== null && progress !== shown) onProgress(progress);
      shown = progress;
      await sleep(LOOK_EVERY_MS);
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

/** Brings the folder of the scheduled backup up to date. */
export function beginBackup<Of extends Beginning>(acting: Of, changing: Changing<Of>): ActionResult {
  const { data, drop, backup } = acting.sources.settings;
  const { folder, keep_days } = backup;
  const args = ['backup', folder, '--data', data, '--drop', drop, '--keep-days', `${keep_days}`];
  return beginCommand(acting, changing, 'backup', args, ({ written, path }) => ({
    ok: true,
    text: `${path} is up to date: ${grouped(Number(written))} bytes written.`,
  }));
}

/** Compares detections.db with its log now. */
export function beginScrub<Of extends Beginning>(acting: Of, changing: Changing<Of>): ActionResult {
  const args = ['verify', '--data', acting.sources.settings.data];
  return beginCommand(acting, changing, 'scrub', args, ({ ok, findings, not_compared }) => {
    if (ok === true) return { ok, text: 'The databases are what their logs say.' };
    const count = Array.isArray(findings) ? findings.length : 0;
    const text =
      count > 0
        ? `${counted(count, 'kind')} of damage found. Run wirewatch verify to see all.`
        : `Not everything could be compared: ${not_compared}.`;
    return { ok: false, text };
  });
}

function beginCommand<Of extends Beginning>(
  acting: Of,
  changing: Changing<Of>,
  kind: 'backup' | 'scrub',
  args: readonly string[],
  endOfRun: (printed: Readonly<Record<string, unknown>>) => JobEnd,
): ActionResult {
  const { sources, by, nowMs } = acting;
  requireNotRunning(sources, { kind, subject: '' });
  changing(acting, (access) => noteOperation(access, { kind }, nowMs));
  const job = sources.jobs.begin({ kind, subject: '', by }, nowMs, async () => {
    const run = runCommand(args);
    sources.jobs.keep(run);
    const outcome = await run.outcome;
    return outcome.kind === 'failed' ? { ok: false, text: outcome.detail } : endOfRun(outcome.printed);
  });
  return { text: 'Begun.', job };
}

function requireNotRunning({ jobs }: Sources, { kind, subject }: Pick<Job, 'kind' | 'subject'>): void {
  if (jobs.isRunning(kind, subject))
    throw new Refused('failed', 'It is under way already. Wait until it is done.');
}
