/**
 * Starts `wirewatch verify` on a schedule, as a process of low priority. The record of the last one, whoever started it,
 * determines when the next is due: a restart changes nothing.
 */
import { type Outcome, type OwnProcess, runCommand } from '../own-process.ts';
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
    void running.outcome.then((outcome) => {
      running = null;
      if (isClosed) return;
      tell(options, outcome);
      // The process has written its record.
      check();
    });
  };
  check();
  const timer = setInterval(check, CHECK_EVERY_MS);
  return {
    /** Starts a process if one is due; the schedule does so by itself. */
    check,
    /** Ends the running process. */
    async close() {
      clearInterval(timer);
      isClosed = true;
      await running?.giveUp();
    },
  };
}

function tell({ log }: ScrubScheduleOptions, outcome: Outcome): void {
  if (outcome.kind === 'failed') {
    const { detail } = outcome;
    log('warn', 'cannot compare detections.db with the log: trying again within an hour', { detail });
    return;
  }
  const { entry, not_compared } = outcome.printed;
  if (not_compared !== null)
    log('warn', 'detections.db was not compared with the log', { reason: not_compared });
  else log('info', 'detections.db was compared with the log', { entry });
}

function report({ log, onDamage }: ScrubScheduleOptions, record: ScrubRecord): void {
  const logged = (of: Parameters<typeof findingsOf>[1], level: 'warn' | 'error', msg: string) => {
    const findings = findingsOf(record, of);
    if (findings.length === 0) return null;
    log(level, msg, { findings });
    return describeFindings(findings);
  };
  onDamage('log', logged('log', 'error', 'the log is damaged'));
  onDamage('access', logged('access', 'error', 'access.db is damaged'));
  logged('trail', 'warn', 'the audit trail is damaged');
  onDamage('secret', logged('secret', 'error', 'the secret is missing or damaged'));
  const ofDatabase = logged('database', 'error', 'detections.db is damaged');
  if (ofDatabase !== null) onDamage('database', `detections.db: ${ofDatabase}`);
}
