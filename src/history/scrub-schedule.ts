/**
 * Starts `wirewatch verify` on a schedule, as a process of low priority. The record of the last one, whoever started it,
 * determines when the next is due: a restart changes nothing.
 */
import { type Outcome, type OwnProcess, runCommand } from '../own-process.ts';
import { paced } from '../pace.ts';
import { dataFolder } from '../store/folder.ts';
import { HOUR_MS, MINUTE_MS, type Now } from '../time.ts';
import type { ScrubResult } from './scrub.ts';
import { describeFindings, FINDING_KINDS, type ScrubFinding } from './scrub-findings.ts';
import { inodeOf, readScrubRecord, type ScrubRecord } from './scrub-record.ts';

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
  /** Called with damage that was found; for the log null: a later scrub finds none. */
  readonly onDamage: (what: 'database' | 'log', detail: string | null) => void;
}

export interface ScrubSchedule {
  /** Starts a scrub if one is due; the schedule does so by itself. */
  check(): void;
  /** Ends a running scrub. */
  close(): Promise<void>;
}

const CHECK_EVERY_MS = paced(MINUTE_MS);
const FIRST_AFTER_MS = paced(5 * MINUTE_MS);
const RETRY_MS = paced(HOUR_MS);

/** @param run runs a command; a test passes its own */
export function startScrubs(options: ScrubScheduleOptions, run = runCommand): ScrubSchedule {
  const scrubs = new Scrubs(options, run);
  scrubs.check();
  const timer = setInterval(() => scrubs.check(), CHECK_EVERY_MS);
  return {
    check: () => scrubs.check(),
    async close() {
      clearInterval(timer);
      await scrubs.close();
    },
  };
}

class Scrubs {
  readonly #options: ScrubScheduleOptions;
  readonly #run: typeof runCommand;
  readonly #folder;
  /** The record that was reported last, as JSON: two may have the same time. */
  #reported = '';
  #running: OwnProcess | null = null;
  /** Monotonic. */
  #notBeforeMs: number;
  #isClosed = false;

  constructor(options: ScrubScheduleOptions, run: typeof runCommand) {
    this.#options = options;
    this.#run = run;
    this.#folder = dataFolder(options.data);
    this.#notBeforeMs = performance.now() + (options.firstAfterMs ?? FIRST_AFTER_MS);
  }

  check(): void {
    if (!this.#options.isReady()) return;
    const last = readScrubRecord(this.#folder);
    if (last !== null && JSON.stringify(last) !== this.#reported) this.#report(last);
    if (this.#isClosed || this.#running !== null || performance.now() < this.#notBeforeMs) return;
    if (this.#isDue(last)) this.#begin();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running?.giveUp();
  }

  #isDue(last: ScrubRecord | null): boolean {
    const { every_hours, now } = this.#options;
    if (every_hours === 0) return false;
    if (last === null || (last.findings.length > 0 && !this.#isOfThisFile(last))) return true;
    return Math.abs(now() - last.at) >= every_hours * HOUR_MS;
  }

  #begin(): void {
    this.#notBeforeMs = performance.now() + RETRY_MS;
    const running = this.#run(['verify', '--data', this.#options.data]);
    this.#running = running;
    void running.outcome.then((outcome) => {
      this.#running = null;
      if (this.#isClosed) return;
      this.#tell(outcome);
      // The process has written its record.
      this.check();
    });
  }

  #tell(outcome: Outcome): void {
    const { log } = this.#options;
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

  #report(record: ScrubRecord): void {
    const { log, onDamage } = this.#options;
    this.#reported = JSON.stringify(record);
    const ofLog = findingsOf(record, 'log');
    if (ofLog.length > 0) log('error', 'the log is damaged', { findings: ofLog });
    onDamage('log', ofLog.length === 0 ? null : describeFindings(ofLog));
    const ofDatabase = findingsOf(record, 'database');
    if (ofDatabase.length === 0 || !this.#isOfThisFile(record)) return;
    log('error', 'detections.db is damaged', { findings: ofDatabase });
    onDamage('database', `detections.db: ${describeFindings(ofDatabase)}`);
  }

  /** Whether the database was not rebuilt since. */
  #isOfThisFile({ inode }: ScrubRecord): boolean {
    return inode === inodeOf(this.#folder);
  }
}

function findingsOf({ findings }: ScrubResult, of: 'database' | 'log'): ScrubFinding[] {
  return findings.filter(({ kind }) => FINDING_KINDS[kind].of === of);
}
