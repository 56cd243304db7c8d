/**
 * Jobs: operations that may take longer than a request. They go on when whoever asked has gone. Of each kind one runs
 * for each subject: who asks for it again waits for the same one.
 */
import { type Static, Type } from '@sinclair/typebox';
import { type Actor, actorText } from '../auth/actor.ts';
import { reasonOf } from '../refused.ts';
import { joined } from '../text-layout.ts';
import { formatMs } from '../time.ts';
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
export type Job = Readonly<Static<typeof JOB>>;

interface Running {
  readonly id: number;
  readonly outcome: Promise<Outcome>;
  readonly listeners: Set<(progress: string) => void>;
}

const JOBS_MAX = 20;

export class Jobs {
  readonly #jobs = new Map<number, Job>();
  readonly #running = new Map<string, Running>();
  #lastId = 0;

  list(): Job[] {
    return [...this.#jobs.values()].reverse();
  }

  /** Begins a job, or joins the one that runs. @param onProgress called with each change, in words */
  run(
    what: {
      readonly operation: string;
      readonly subject: string;
      readonly by: Actor;
      readonly nowMs: number;
    },
    onProgress: (text: string) => void,
    work: (tell: (text: string) => void) => Promise<Outcome>,
  ): { readonly job: Job; readonly outcome: Promise<Outcome> } {
    const key = JSON.stringify([what.operation, what.subject]);
    const running = this.#running.get(key) ?? this.#begin(key, what, work);
    running.listeners.add(onProgress);
    const job = this.#jobs.get(running.id);
    if (job === undefined) throw new Error('a job that runs is in the list');
    return { job, outcome: running.outcome };
  }

  #begin(
    key: string,
    { operation, subject, by, nowMs }: Parameters<Jobs['run']>[0],
    work: Parameters<Jobs['run']>[2],
  ): Running {
    this.#lastId += 1;
    const id = this.#lastId;
    const listeners = new Set<(progress: string) => void>();
    const update = (change: Partial<Job>) => {
      const known = this.#jobs.get(id);
      if (known !== undefined) this.#jobs.set(id, { ...known, ...change });
    };
    const begun = { id, operation, subject, by: actorText(by), started_at: formatMs(nowMs) };
    this.#jobs.set(id, { ...begun, state: 'running', text: '' });
    this.#removeOldest();
    const outcome = work((text) => {
      update({ text });
      for (const listener of listeners) listener(text);
    }).finally(() => this.#running.delete(key));
    outcome.then(
      ({ failed = false, done, warning }) =>
        update({ state: failed ? 'failed' : 'done', text: joined(' ', [done ?? null, warning ?? null]) }),
      (error: unknown) => update({ state: 'failed', text: reasonOf(error) }),
    );
    const running = { id, outcome, listeners };
    this.#running.set(key, running);
    return running;
  }

  #removeOldest(): void {
    for (const { id, state } of this.#jobs.values())
      if (this.#jobs.size > JOBS_MAX && state !== 'running') this.#jobs.delete(id);
  }
}
