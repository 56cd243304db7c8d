/** Jobs: actions that take longer than a request, and continue when the consoles are closed. */
import type { BackupProcess } from '../../backup/backup-process.ts';
import { Refused } from '../../refused.ts';
import { formatMs } from '../../time.ts';
import type { Job } from './api.ts';

/** The result, in a sentence. */
export interface JobEnd {
  readonly ok: boolean;
  readonly text: string;
}

const JOBS_MAX = 20;

export class Jobs {
  readonly #jobs = new Map<number, Job>();
  readonly #processes = new Set<BackupProcess>();
  readonly #onChange: () => void;
  #lastId = 0;

  /** @param onChange called after each change */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** The newest first. */
  list(): Job[] {
    return [...this.#jobs.values()].reverse();
  }

  /** @throws Refused `failed` while such a job runs */
  requireNotRunning({ kind, subject }: Pick<Job, 'kind' | 'subject'>): void {
    const isSame = (job: Job) => job.state === 'running' && job.kind === kind && job.subject === subject;
    if (this.list().some(isSame))
      throw new Refused('failed', 'It is already running. Wait until it is done.');
  }

  /** A process that belongs to a job: it ends with the appliance. */
  keep(process: BackupProcess): void {
    this.#processes.add(process);
    void process.outcome.then(() => this.#processes.delete(process));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#processes].map((process) => process.giveUp()));
  }

  begin(
    what: Pick<Job, 'kind' | 'subject' | 'by'>,
    nowMs: number,
    work: (onProgress: (text: string) => void) => Promise<JobEnd>,
  ): Job {
    this.#lastId += 1;
    const id = this.#lastId;
    const job: Job = { id, ...what, started_at: formatMs(nowMs), state: 'running', text: '' };
    const update = (change: Partial<Job>) => {
      const known = this.#jobs.get(id);
      if (known !== undefined) this.#jobs.set(id, { ...known, ...change });
      this.#onChange();
    };
    this.#jobs.set(id, job);
    this.#removeOldest();
    work((text) => update({ text })).then(
      ({ ok, text }) => update({ state: ok ? 'done' : 'failed', text }),
      (error: Error) => update({ state: 'failed', text: error.message }),
    );
    this.#onChange();
    return job;
  }

  #removeOldest(): void {
    for (const { id, state } of this.#jobs.values())
      if (this.#jobs.size > JOBS_MAX && state !== 'running') this.#jobs.delete(id);
  }
}
