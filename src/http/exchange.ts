/** One request on its way through the pipeline, its answer, and what a lab changes in both. */
import type { FileHandle } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Credential } from '../auth/credential-check.ts';
import type { Rate } from '../limits/request-rate.ts';
import type { OAuthErrorCode, ProblemCode } from '../problem-titles.ts';
import type { Endpoint } from './description.ts';

export interface Exchange {
  readonly request_id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Null where there is none at the path, or not for the method. */
  readonly endpoint: Endpoint | null;
  /** Without the query, which can hold secrets. */
  readonly path: string;
  /** Empty without one. A lab may change it. */
  query: string;
  readonly nowMs: number;
  /** By `performance.now()`. */
  readonly startedMs: number;
  readonly address: string;
  readonly cors: readonly string[];
  intervention: Intervention | null;
  /** The key id in the credential, not verified, and verified. The token endpoint, which is open, sets both itself. */
  claimed_key_id: string | null;
  key_id: string | null;
  /** The credential whose rows are counted, and when it was verified, by both clocks: after a long poll, again. */
  reader: { readonly credential: Credential; readonly atMs: number; readonly startedMs: number } | null;
  /** Set once the credential is verified: its headers are sent then. */
  rate: Rate | null;
}

export interface Answer {
  readonly status: number;
  /** Pieces are sent in order. A 304 has ''. */
  readonly body: string | readonly Buffer[] | FileBody | EventBody;
  readonly contentType?: string;
  /** Further headers: name, value, name, value. */
  readonly headers?: readonly string[];
  /** Detections in the body: they count against the daily allowance. */
  readonly rows?: number;
  /** The position of the change stream's cursor in the body: how far the client has read. */
  readonly position?: number;
  /** Spent waiting for a change (`Prefer: wait`). */
  readonly waited_ms?: number;
  readonly code?: ProblemCode | OAuthErrorCode;
}

export interface FileBody {
  /** Closed when it is sent. */
  readonly handle: FileHandle;
  readonly start: number;
  readonly bytes: number;
}

/** A body without an end that is known: server-sent events, never compressed. */
export type EventBody = Readonly<{ events: AsyncIterable<Buffer | string> }>;

export interface Intervention {
  /** The connection was cut, or a simulated proxy has answered. */
  readonly isTaken: boolean;
  /** Called before the credential is checked. @throws Refused in place of that */
  atCredential(): void;
  /** Called before the endpoint. @param credential null at an open endpoint; @throws in place of the endpoint */
  atEndpoint(credential: Credential | null): void;
  /** @returns the answer that replaces the endpoint's, not yet compressed */
  answered(answer: Answer): Answer;
  /** Sends every answer, problems too; never rejects. @param closing as of sendAnswer */
  send(answer: Answer, closing: boolean): Promise<void>;
}

/** What a lab changes in requests and answers. An appliance has none. */
export interface Interventions {
  /** Answers a request for an operation. @returns false, with nothing done, for a request to the API */
  control(request: IncomingMessage, response: ServerResponse): boolean;
  /** Called for every request to the API. */
  begin(exchange: Exchange, baseUrl: string): Intervention;
  readonly shown: () => object;
}
