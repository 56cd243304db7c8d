/**
 * Starts scrubs on a schedule. The record of the last scrub determines when the next is due: a restart changes nothing,
 * and `wirewatch verify` counts as a scrub.
 */
import { paced } from '../pace.ts';
import { startWorker } from '../packed.ts';
import { reasonOf } from '../refused.ts';
import { dataFolder } from '../store/folder.ts';
import { callsTo } from '../thread-call.ts';
import { HOUR_MS, MINUTE_MS, type Now } from '../time.ts';
import type { ScrubResult } from './scrub.ts';
import { describeFindings, FINDING_KINDS, type ScrubFinding } from './scrub-findings.ts';
import { inodeOf, readScrubRecord, type ScrubRecord, writeScrubRecord } from './scrub-record.ts';
import type { ScrubCalls, ScrubSettings } from './scrub-thread.ts';

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

export interface RunningScrub {
  /** Null: it was ended early. */
  readonly result: Promise<ScrubResult | null>;
  end(): Promise<void>;
}

const CHECK_EVERY_MS = paced(MINUTE_MS);
const FIRST_AFTER_MS = paced(5 * MINUTE_MS);
const RETRY_MS = paced(HOUR_MS);

/** @param run a test passes its own */
export function startScrubs(options: ScrubScheduleOptions, run = runOnThread): ScrubSchedule {
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
  readonly #run: typeof runOnThread;
  readonly #folder;
  /** The record that was reported last, as JSON: two may have the same time. */
  #reported = '';
  #running: RunningScrub | null = null;
  /** Monotonic. */
  #notBeforeMs: number;
  #isClosed = false;

  constructor(options: ScrubScheduleOptions, run: typeof runOnThread) {
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
    await this.#running?.end();
  }

  #isDue(last: ScrubRecord | null): boolean {
    const { every_hours, now } = this.#options;
    if (every_hours === 0) return false;
    if (last === null || (last.findings.length > 0 && !this.#isOfThisFile(last))) return true;
    return Math.abs(now() - last.at) >= every_hours * HOUR_MS;
  }

  #begin(): void {
    const { log, now } = this.#options;
    this.#notBeforeMs = performance.now() + RETRY_MS;
    const begunAt = now();
    const running = this.#run({ data: this.#options.data });
    this.#running = running;
    running.result
      .then((result) => {
        this.#running = null;
        if (result === null) return;
        writeScrubRecord(this.#folder, result, now());
        const seconds = Math.round((now() - begunAt) / 1000);
        if (result.not_compared !== null)
          log('warn', 'detections.db was not compared with the log', { reason: result.not_compared });
        else log('info', 'detections.db was compared with the log', { entry: result.entry, seconds });
        this.check();
      })
      .catch((error) => {
        this.#running = null;
        const detail = reasonOf(error);
        log('warn', 'cannot compare detections.db with the log: trying again within an hour', {
          detail,
        });
      });
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

function runOnThread(settings: ScrubSettings): RunningScrub {
  const worker = startWorker({ role: 'scrub', settings });
  const thread = callsTo<ScrubCalls>(worker, 'the scrub thread');
  return {
    result: thread.call('scrub').finally(() => worker.terminate()),
    async end() {
      thread.post('stop');
      await thread.ended;
    },
  };
}
