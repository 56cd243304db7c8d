/** What was begun from consoles and takes longer than a request: it goes on when they are closed. */
import type { BackupProcess } from '../../backup/backup-process.ts';
import { formatMs } from '../../time.ts';
import type { Job } from './api.ts';

/** What came of it, in a sentence. */
export interface JobEnd {
  readonly ok: boolean;
  readonly text: string;
}

const JOBS_MAX = 20;

export class Jobs {
  readonly #jobs = new Map<number, Job>();
  readonly #processes = new Set<Pick<BackupProcess, 'outcome' | 'giveUp'>>();
  readonly #tell: () => void;
  #last = 0;

  /** @param tell called after each change */
  constructor(tell: () => void) {
    this.#tell = tell;
  }

  /** The newest first. */
  list(): Job[] {
    return [...this.#jobs.values()].reverse();
  }

  isRunning(kind: Job['kind'], subject: string): boolean {
    return this.list().some((job) => job.state === 'running' && job.kind === kind && job.subject === subject);
  }

  /** A process that belongs to a job: it ends with the appliance. */
  keep(process: Pick<BackupProcess, 'outcome' | 'giveUp'>): void {
    this.#processes.add(process);
    void process.outcome.then(() => this.#processes.delete(process));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#processes].map((process) => process.giveUp()));
  }

  /** @param work is given what tells how far it is */
  begin(
    what: Pick<Job, 'kind' | 'subject' | 'by'>,
    nowMs: number,
    work: (onProgress: (text: string) => void) => Promise<JobEnd>,
  ): Job {
    this.#last += 1;
    const id = this.#last;
    const job: Job = { id, ...what, started_at: formatMs(nowMs), state: 'running', text: '' };
    const set = (change: Partial<Job>) => {
      const known = this.#jobs.get(id);
      if (known !== undefined) this.#jobs.set(id, { ...known, ...change });
      this.#tell();
    };
    this.#jobs.set(id, job);
    this.#forget();
    work((text) => set({ text })).then(
      ({ ok, text }) => set({ state: ok ? 'done' : 'failed', text }),
      (error: Error) => set({ state: 'failed', text: error.message }),
    );
    this.#tell();
    return job;
  }

  /** The oldest that have ended. */
  #forget(): void {
    for (const { id, state } of this.#jobs.values())
      if (this.#jobs.size > JOBS_MAX && state !== 'running') this.#jobs.delete(id);
  }
}
