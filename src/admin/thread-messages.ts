/** What the main thread and the operations thread ask of each other, and tell. */
import type { Actor, Doing } from '../auth/actor.ts';
import type { Ticket } from '../auth/console-sessions.ts';
import type { Denied } from '../auth/denials.ts';
import type { IngestRequest } from '../ingest/threads/ingest-messages.ts';
import type { Context, Live, Way } from '../operations/operation.ts';
import { problemDocument } from '../operations/problem.ts';

/** Plain data, fixed at the start. */
export type OperationsSettings = Pick<Context, 'config' | 'kind'>;

/** With what only the main thread knows when it asks. */
export type WithLive<Ask> = Ask & { readonly live: Live };

/** `path`: behind `/console/`; `mayAct`: whether acts are offered. */
export type AskView = Readonly<{ path: string; query: string; mayAct: boolean }>;

export interface AskOperation {
  /** The name as it stands in an address: `key-create`. */
  readonly path: string;
  readonly given: unknown;
  readonly way: Way;
  readonly by: Actor;
  readonly isAsync?: boolean;
}

/** What the operations thread serves. */
export interface OperationsCalls {
  /** Never rejects. */
  view(ask: WithLive<AskView>): Told;
  /** Never rejects. @param tell called with the progress, in words */
  operate(ask: WithLive<AskOperation>, tell: (progress: string) => void): Told;
  /** Ends the thread and the processes that its jobs have begun. */
  stop(): void;
}

/** What the main thread serves. */
export interface MainCalls {
  /** @throws Refused */
  ingest(request: IngestRequest, tell: (progress: string) => void): unknown;
  /** @throws Refused */
  promote(by: object): void;
  /** @throws Refused */
  lab(asked: AskLab): unknown;
  link(link: Ticket): void;
  endSessions(): void;
  written(): void;
  /** The spare copy of access.db could not be brought up to date. */
  stale(reason: string): void;
  deny(denied: Denied): void;
  forget(denied: readonly Denied[]): void;
}

/** An operation that a lab does in the main thread. `name`: without `lab`; `operation`: its name in the audit trail. */
export type AskLab = Readonly<{ name: string; values: object; operation: Doing }>;

/** An answer: JSON text, unless its headers name another type. */
export interface Told {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** For the log; and whether it is damage of detections.db. */
  readonly fault?: { readonly message: string; readonly isDamage: boolean };
}

/** @param detail what is wrong and what to do */
export function problem(status: number, detail: string, code: string, headers = {}): Told {
  return { status, body: JSON.stringify(problemDocument(status, detail, code)), headers };
}
