/**
 * Starts `wirewatch verify` on a schedule, as a process of low priority. The record of the last one, whoever started it,
 * determines when the next is due: a restart changes nothing.
 */
import { type OwnProcess, type Printed, runCommand } from '../own-process.ts';
import { paced } from '../pace.ts';
import { dataFolder } from '../store/folder.ts';
import { HOUR_MS, MINUTE_MS, type Now } from '../time.ts';
import { describeFindings, findingsOf, readScrubRecord, type ScrubRecord } from './scrub-findings.ts';

export interface ScrubScheduleOptions {
  readonly data: string;
  /** 0: never. */
  readonly every_hours: number;
  /** How long to wait after a start, which has other work to do first. */
  readonly firstAfterMs?: number;
  readonly now: Now;
  /** Whether detections.db can be read, and is not known to be damaged. */
  readonly isReady: () => boolean;
  readonly log: (level: 'info' | 'warn' | 'error', msg: string, fields: Record<string, unknown>) => void;
  /** Called with damage that was found; but for the database null: a later scrub finds none. */
  readonly onDamage: (what: 'database' | 'log' | 'access' | 'secret', detail: string | null) => void;
}

const CHECK_EVERY_MS = paced(MINUTE_MS);
const FIRST_AFTER_MS = paced(5 * MINUTE_MS);
const RETRY_MS = paced(HOUR_MS);

/** @param run runs a command; a test passes its own */
export function startScrubs(options: ScrubScheduleOptions, run = runCommand) {
  const { data, every_hours, now, isReady } = options;
  const folder = dataFolder(data);
  /** The record that was reported last, as JSON: two may have the same time. */
  let reported = '';
  let running: OwnProcess | null = null;
  let isClosed = false;
  /** Monotonic. */
  let notBeforeMs = performance.now() + (options.firstAfterMs ?? FIRST_AFTER_MS);
  const isDue = (last: ScrubRecord | null) =>
    every_hours > 0 && (last === null || Math.abs(now() - last.at) >= every_hours * HOUR_MS);
  const check = () => {
    if (!isReady()) return;
    const last = readScrubRecord(folder);
    if (last !== null && JSON.stringify(last) !== reported) {
      reported = JSON.stringify(last);
      report(options, last);
    }
    if (running !== null || isClosed || performance.now() < notBeforeMs || !isDue(last)) return;
    notBeforeMs = performance.now() + RETRY_MS;
    running = run(['verify', '--data', data]);
    const ended = running.printed.catch((error: Error) => error);
    void ended.then((printed) => {
      running = null;
      if (isClosed) return;
      tell(options, printed);
      // The process has written its record.
      check();
    });
  };
  check();
  const timer = setInterval(check, CHECK_EVERY_MS);
  return {
    /** Starts a process if one is due; the schedule does so by itself. */
    check,
    async close() {
      clearInterval(timer);
      isClosed = true;
      await running?.giveUp();
    },
  };
}

function tell({ log }: ScrubScheduleOptions, printed: Printed | Error): void {
  if (printed instanceof Error)
    log('warn', 'cannot compare detections.db with the log: trying again within an hour', {
      detail: printed.message,
    });
  else if (printed.not_compared !== null)
    log('warn', 'detections.db was not compared with the log', { reason: printed.not_compared });
  else log('info', 'detections.db was compared with the log', { entry: printed.entry });
}

function report({ log, onDamage }: ScrubScheduleOptions, record: ScrubRecord): void {
  const ofLog = findingsOf(record, 'log');
  if (ofLog.length > 0) log('error', 'the log is damaged', { findings: ofLog });
  onDamage('log', ofLog.length === 0 ? null : describeFindings(ofLog));
  const ofAccess = findingsOf(record, 'access');
  if (ofAccess.length > 0) log('error', 'access.db is damaged', { findings: ofAccess });
  onDamage('access', ofAccess.length === 0 ? null : describeFindings(ofAccess));
  const ofTrail = findingsOf(record, 'trail');
  if (ofTrail.length > 0) log('warn', 'the audit trail is damaged', { findings: ofTrail });
  const ofSecret = findingsOf(record, 'secret');
  if (ofSecret.length > 0) log('error', 'the secret is missing or damaged', { findings: ofSecret });
  onDamage('secret', ofSecret.length === 0 ? null : describeFindings(ofSecret));
  const ofDatabase = findingsOf(record, 'database');
  if (ofDatabase.length === 0) return;
  log('error', 'detections.db is damaged', { findings: ofDatabase });
  onDamage('database', `detections.db: ${describeFindings(ofDatabase)}`);
}
