/**
 * Jobs: operations that may take longer than a request. They go on when whoever asked has gone. Of each kind one runs
 * for each subject: who asks for it again waits for the same one.
 */
import { type Static, Type } from '@sinclair/typebox';
import { type Actor, actorText } from '../auth/actor.ts';
import { reasonOf } from '../refused.ts';
import { joined } from '../text-layout.ts';
import { formatMs } from '../time.ts';
import type { Subject } from './operation.ts';
import type { Outcome } from './problem.ts';

export const JOB = Type.Object({
  id: Type.Integer(),
  /** `ingest replay` */
  operation: Type.String(),
  subject: Type.String({ description: 'What it works on; empty where there is only one.' }),
  by: Type.String(),
  started_at: Type.String({ format: 'date-time' }),
  state: Type.Union([Type.Literal('running'), Type.Literal('done'), Type.Literal('failed')]),
  text: Type.String({ description: 'How far it is, or how it ended.' }),
});
export type Job = Static<typeof JOB>;

type Tell = (progress: string) => void;
type Work = (tell: Tell) => Promise<Outcome>;

type Asked = Readonly<{ operation: string; subject: Subject; by: Actor; nowMs: number }>;

interface Running {
  /** It changes until it ends. */
  readonly job: Readonly<Job>;
  readonly outcome: Promise<Outcome>;
  readonly listeners: Set<Tell>;
}

const JOBS_MAX = 20;

export class Jobs {
  #jobs: readonly Job[] = [];
  readonly #running = new Map<string, Running>();
  #lastId = 0;

  /** The newest first. */
  list(): readonly Readonly<Job>[] {
    return this.#jobs;
  }

  /** Begins a job, or joins the one that runs. @param onProgress called with each change, in words */
  run(asked: Asked, onProgress: Tell, work: Work): Running {
    const key = JSON.stringify([asked.operation, asked.subject]);
    const running = this.#running.get(key) ?? this.#begin(key, asked, work);
    running.listeners.add(onProgress);
    return running;
  }

  #begin(key: string, { operation, subject: [subject], by, nowMs }: Asked, work: Work): Running {
    this.#lastId += 1;
    const begun = { id: this.#lastId, operation, subject, by: actorText(by), started_at: formatMs(nowMs) };
    const job: Job = { ...begun, state: 'running', text: '' };
    this.#jobs = [job, ...this.#jobs].filter(({ state }, at) => at < JOBS_MAX || state === 'running');
    const listeners: Running['listeners'] = new Set();
    const outcome = work((text) => {
      job.text = text;
      for (const listener of listeners) listener(text);
    }).finally(() => this.#running.delete(key));
    outcome.then(
      ({ failed = false, done, warning }) => {
        job.state = failed ? 'failed' : 'done';
        job.text = joined(' ', [done ?? null, warning ?? null]);
      },
      (error: unknown) => {
        job.state = 'failed';
        job.text = reasonOf(error);
      },
    );
    const running = { job, outcome, listeners };
    this.#running.set(key, running);
    return running;
  }
}
