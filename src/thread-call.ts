/**
 * Calls between threads: requests with ids, their progress, and their answers. A room declares what its thread serves as an
 * interface of functions with at most one argument, and the function that is told the progress of the call, if it has any.
 * Arguments, progress and answers are cloned.
 */
import type { MessagePort, Transferable, Worker } from 'node:worker_threads';
import { Refused, type RefusedCode } from './refused.ts';

type Served = (argument: never, tell: never) => unknown;
type Calls<C> = { readonly [Name in keyof C]: Served };
type Sent<P extends unknown[]> = P extends [unknown, unknown]
  ? [...P, transfer?: readonly Transferable[]]
  : P;
type Answer<F extends Served> = Awaited<ReturnType<F>>;
type Tell = (progress: unknown) => void;
type Plain = readonly [argument?: unknown, tell?: Tell, transfer?: readonly Transferable[]];

/** What the end that is called does for each call; it may tell the progress until it has answered. */
export type Handlers<C extends Calls<C>> = {
  readonly [Name in keyof C]: (...sent: Parameters<C[Name]>) => Answer<C[Name]> | Promise<Answer<C[Name]>>;
};

/** Cloning keeps neither the class of an error nor its code. */
type PlainError = Pick<Error, 'name' | 'message'> & { readonly code?: RefusedCode };

export interface ThreadCalls<C extends Calls<C>> {
  /** Rejects with the handler's error, or when the thread ends before it answers. */
  call<Name extends keyof C>(name: Name, ...sent: Sent<Parameters<C[Name]>>): Promise<Answer<C[Name]>>;
  /** Without an answer; a handler that fails ends the thread. */
  post<Name extends keyof C>(name: Name, ...sent: Parameters<C[Name]>): void;
  /** Calls without an answer, including those that the end of the thread rejected. */
  unanswered(): number;
  /** Resolves when the thread has ended: with the error that ended it, or null. */
  readonly ended: Promise<Error | null>;
}

/** The caller's end. @param what names the thread in errors, such as `the reader thread` */
export function callsTo<C extends Calls<C>>(worker: Worker | MessagePort, what: string): ThreadCalls<C> {
  const waiting = new Map<number, PromiseWithResolvers<never> & { readonly tell: Plain[1] }>();
  const ended = Promise.withResolvers<Error | null>();
  let hasEnded = false;
  let fault: Error | null = null;
  let lastId = 0;
  const reject = (call: PromiseWithResolvers<never>) => call.reject(fault ?? new Error(`${what} has ended`));
  worker.on('message', (message) => {
    // A call by the other end, of what this one serves.
    if ('name' in message) return;
    const call = waiting.get(message.id);
    if ('progress' in message) return call?.tell?.(message.progress);
    waiting.delete(message.id);
    if ('error' in message) call?.reject(revived(message.error));
    else call?.resolve(message.answer);
  });
  worker.on('error', (error) => {
    fault = revived(error);
  });
  worker.on('exit', () => {
    hasEnded = true;
    for (const call of waiting.values()) reject(call);
    ended.resolve(fault);
  });
  return {
    call(name, ...sent) {
      const [argument, tell, transfer]: Plain = sent as never;
      lastId += 1;
      const call = { ...Promise.withResolvers<never>(), tell };
      waiting.set(lastId, call);
      if (hasEnded) reject(call);
      else worker.postMessage({ id: lastId, name, argument }, transfer);
      return call.promise;
    },
    post: (name, ...[argument]) => worker.postMessage({ id: null, name, argument }),
    unanswered: () => waiting.size,
    ended: ended.promise,
  };
}

/** The end that is called; both ends of a port may serve the other. Nothing is done for a call without a handler. */
export function serveCalls<C extends Calls<C>>(port: Worker | MessagePort, handlers: Partial<Handlers<C>>) {
  port.on('message', async ({ id, name, argument }) => {
    if (name === undefined) return;
    const tell: Tell = (progress) => port.postMessage({ id, progress });
    const answer = async () => ({
      id,
      answer: await handlers[name as keyof C]?.(...([argument, tell] as never)),
    });
    if (id === null) await answer();
    else
      port.postMessage(
        await answer().catch((error) => ({
          id,
          error: { ...error, name: error.name, message: error.message, stack: error.stack },
        })),
      );
  });
}

function revived(error: PlainError): Error {
  if (error.name === 'Refused' && error.code !== undefined)
    return Object.assign(new Refused(error.code, error.message), error);
  return error instanceof Error ? error : Object.assign(new Error(), error);
}
