/** The messages between the main thread and the operations thread. */

import type { Actor, Doing } from '../auth/actor.ts';
import type { Denied } from '../auth/denials.ts';
import type { Config } from '../config/load.ts';
import type { IngestRequest, RequestOutcome } from '../ingest/requests/requests.ts';
import type { LabName } from '../operations/lab-members.ts';
import type { Live, Way } from '../operations/operation.ts';
import { problemDocument } from '../operations/problem.ts';
import type { RefusedCode } from '../refused.ts';
import type { InstallationKind } from '../store/installation.ts';
import type { EventName } from './console/api.ts';

/** Plain data, fixed at the start. */
export interface OperationsSettings {
  readonly config: Config;
  readonly kind: InstallationKind;
  /** Where clients reach the API. */
  readonly base_url: string;
}

interface Asked {
  /** Why detections.db must not be read now; null when it may. */
  readonly unreadable: string | null;
  readonly live: Live;
}

/** A view of the console. */
export interface AskView extends Asked {
  readonly kind: 'view';
  /** Behind `/console/`. */
  readonly path: string;
  readonly query: string;
  /** Whether actions are offered. */
  readonly mayAct: boolean;
}

/** An operation of the table. */
export interface AskOperation extends Asked {
  readonly kind: 'operation' | 'question';
  /** Unique: progress names it. */
  readonly id: number;
  /** As it stands in an address: `key-create`. */
  readonly path: string;
  /** Its members, as JSON. */
  readonly given: unknown;
  readonly way: Way;
  readonly by: Actor;
  /** Whether the answer is the job that it begins, not its outcome. */
  readonly isAsync: boolean;
}

export type Ask = AskView | AskOperation;

export interface OperationsCalls {
  /** Never rejects. */
  ask(ask: Ask): Told;
  /** What the ingest thread said to a request. */
  ingestSaid(said: { readonly id: number; readonly said: IngestSaid }): void;
  /** What the lab answered. */
  labSaid(said: { readonly id: number; readonly said: LabSaid }): void;
  /** Whether somebody listens for changes: each is an event, the names of what changed. */
  watch(on: boolean): void;
  /** Ends the thread and the processes that its jobs have begun. */
  stop(): void;
}

export type IngestSaid =
  | { readonly kind: 'progress'; readonly text: string }
  | { readonly kind: 'outcome'; readonly outcome: RequestOutcome };

export type LabSaid =
  | { readonly kind: 'done'; readonly value: unknown }
  /** Without a code, it is a fault. */
  | { readonly kind: 'failed'; readonly code: RefusedCode | null; readonly reason: string };

/** An operation that a lab does in the main thread. */
export interface AskLab {
  readonly name: LabName;
  readonly values: object;
  /** As the audit trail names it. */
  readonly operation: Doing;
}

export type OperationsEvent =
  /** What the views of the console show has changed. */
  | { readonly kind: 'changed'; readonly names: readonly EventName[] }
  | { readonly kind: 'progress'; readonly id: number; readonly text: string }
  | { readonly kind: 'ingest'; readonly id: number; readonly request: IngestRequest }
  | { readonly kind: 'lab'; readonly id: number; readonly asked: AskLab }
  /** access.db was written. */
  | { readonly kind: 'access' }
  /** The spare copy of access.db could not be brought up to date. */
  | { readonly kind: 'stale'; readonly reason: string }
  | { readonly kind: 'deny' | 'forget'; readonly denied: readonly Denied[] };

/** An answer: JSON text. */
export interface Told {
  readonly status: number;
  readonly body: string;
  /** For the log; and whether it is damage of detections.db. */
  readonly fault?: { readonly message: string; readonly isDamage: boolean };
}

/** @param detail what is wrong and what to do */
export function problem(status: number, detail: string, code?: string): Told {
  return { status, body: JSON.stringify(problemDocument(status, detail, code)) };
}
