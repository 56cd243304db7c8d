/** The messages between the main thread and the console thread, and the problem document of a refusal. */
import { STATUS_CODES } from 'node:http';
import type { ExportName } from '../../detection/content-type.ts';
import type { Actor } from '../../history/actor.ts';

/** Plain data, fixed at the start. */
export interface ConsoleSettings {
  readonly data: string;
  /** The drop folder, absolute. */
  readonly drop: string;
  readonly enabled: readonly ExportName[];
  /** The folder absolute. */
  readonly backup: { readonly folder: string; readonly every_minutes: number; readonly keep_days: number };
  /** `[limits] daily_rows` */
  readonly daily_rows: number;
  /** `[keys] prefix` */
  readonly key_prefix: string;
  /** Where clients reach the API. */
  readonly base_url: string;
}

/** A request whose session was checked. */
export type Ask =
  | {
      readonly kind: 'read';
      /** Behind `/console/`. */
      readonly path: string;
      readonly query: string;
      /** Whether actions are offered. */
      readonly mayAct: boolean;
      /** Why detections.db must not be read now; null when it may. */
      readonly unreadable: string | null;
    }
  | {
      readonly kind: 'act';
      /** The kind of the action. */
      readonly action: string;
      /** JSON text. */
      readonly body: string;
      readonly by: Actor;
      readonly unreadable: string | null;
    };

export interface ConsoleCalls {
  /** Never rejects. */
  ask(ask: Ask): Told;
  /** Whether somebody listens for changes: each is an event, the names of what changed. */
  watch(on: boolean): void;
  /** Ends the thread and what its jobs have begun. */
  stop(): void;
}

/** An answer: JSON text. */
export interface Told {
  readonly status: number;
  readonly body: string;
  /** For the log; and whether it is damage of detections.db. */
  readonly fault?: { readonly message: string; readonly isDamage: boolean };
}

/** RFC 9457, without a type. @param detail what is wrong and what to do */
export function problem(status: number, detail: string): Told {
  return { status, body: JSON.stringify({ title: STATUS_CODES[status], status, detail }) };
}
