/**
 * An act or a read of an operator, described once: the command, the form of the console, the request to the
 * administration API, its place in the audit trail and in the manual are made from it.
 */
import type { TSchema } from '@sinclair/typebox';
import type { Actor } from '../auth/actor.ts';
import { noteOperation } from '../auth/audit.ts';
import type { Ticket } from '../auth/console-sessions.ts';
import type { Ended } from '../auth/denials.ts';
import type { Config } from '../config/load.ts';
import type { AlertDocument } from '../health/alert-texts.ts';
import type { AskIngest } from '../ingest/threads/ingest-messages.ts';
import { failed, Refused } from '../refused.ts';
import type { Database } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import type { InstallationKind } from '../store/installation.ts';
import type { CopyState, Role } from '../store/role.ts';
import { documentText } from '../text-layout.ts';
import { type Members, readMembers, type ValuesOf } from './member.ts';
import type { Outcome } from './problem.ts';

/** How somebody asks for an operation: the audit trail says it. */
export type Way = 'command' | 'console' | 'api';

/** What only a running appliance knows. */
export interface Live {
  readonly url: string;
  readonly console: { readonly url: string } | null;
  /** Why detections.db must not be read now; null when it may. */
  readonly unreadable: string | null;
  readonly alerts: readonly AlertDocument[];
  readonly role: Role;
  /** How the copy stands; null: no place for it is set. */
  readonly copy: CopyState | null;
  /** The file that is being read; null: there is none. */
  readonly reading: { readonly file: string; readonly rows: number } | null;
}

/** @param to the copy; @returns why an operation that changes something is refused on a machine that is no writer */
export function refusedBy(role: Exclude<Role, 'writer'>, to: string): Refused {
  return failed(
    role === 'standby'
      ? `this machine is a standby: it follows ${to || 'the copy'}. Run the command on the writer, or make this one the writer: wirewatch promote`
      : `another machine took over from this one. Run the command there, or make this one a standby: stop Wirewatch, set [copy] standby, and run wirewatch restore ${to || 'SRC'} --replace`,
  );
}

/** What an operation works on. The same functions run in an appliance and, without one, in a command's process. */
export interface Context {
  readonly folder: DataFolder;
  readonly kind: InstallationKind;
  readonly isNew: boolean;
  readonly config: Config;
  readonly by: Actor;
  readonly nowMs: number;
  /** Null while no appliance runs. */
  readonly live: Live | null;
  /** A reader on access.db. @throws Refused if there is no installation */
  readonly access: () => Database;
  /** Runs `work` on a writer of access.db: what it changes is in the audit trail, under the name of this operation. */
  readonly change: <Result>(work: (access: Database) => Result) => Result;
  /** A reader on detections.db; null if nothing was ever ingested. @throws Refused `unavailable` while it must not be read */
  readonly detections: () => Database | null;
  /** Asks the thread that writes detections.db. */
  readonly ingest: AskIngest;
  /** Makes a standby the writer. @returns false if this machine was it already. @throws Refused `failed` */
  readonly promote: () => Promise<boolean>;
  /** What only a running appliance can do; null while none runs. */
  readonly running: {
    /** Asks the lab in the main thread. @throws Refused `failed` if this is none */
    readonly lab: (name: string, values: object) => Promise<unknown>;
    /** Remembers a link into its console. */
    readonly remember: (link: Ticket) => void;
    /** Ends all sessions and links of its console. */
    readonly endSessions: () => void;
    /** Refuses somebody from its memory, when the disk cannot take it. */
    readonly deny: (ended: Ended) => void;
  } | null;
}

/** Of a job. */
export type Subject = readonly [text: string, ...state: unknown[]];

export interface Description<Own extends Members, Value> {
  /** In lower case, without a full stop, as a line of a list. */
  readonly summary: string;
  readonly help?: string;
  readonly members?: Own;
  /** The members that a command takes as operands, in order; the last may take several. Default: `id`, if it has one. */
  readonly operands?: readonly (keyof Own & string)[];
  /** Command lines without the program's name. */
  readonly examples: readonly string[];
  /** Whether it creates a missing installation. */
  readonly creates?: boolean;
  /** Whether it reads the drop folder: a command on a stopped installation may have to be told where that is. */
  readonly readsDrop?: boolean;
  /**
   * For what may take longer than a request: of its kind, one at a time runs for each subject. What it depends on besides
   * follows: who asks when that has changed does not wait for one that began before.
   */
  readonly job?: (values: ValuesOf<Own>, context: Pick<Context, 'access'>) => Subject;
  /** For what cannot be taken back: a person types the value of this member to confirm it. */
  readonly confirmedBy?: keyof Own & string;
  readonly run: (context: Context, values: ValuesOf<Own>) => Outcome<Value> | Promise<Outcome<Value>>;
  readonly result?: TSchema;
  /** The value as a command prints it, between `done` and `next`; null: nothing. Default: the members of a `result`. */
  readonly text?: (value: Value) => string | null;
  /** The form of the console; absent: the console has another way to it, or none. */
  readonly form?: Form;
}

export interface Form {
  readonly label: string;
  /** What will happen, shown before it is confirmed. */
  readonly will: string;
  /** The question, without its subject; default: the label. */
  readonly title?: string;
  /** It takes access away from a client, or cannot be undone. */
  readonly isGrave?: boolean;
  /** The members that it has fields for; default: all that are not given. */
  readonly fields?: readonly string[];
}

/** {@link Description} without the types of its members: what is made from the table sees this. */
export interface Operation extends Omit<Description<Members, unknown>, 'members' | 'job' | 'run' | 'text'> {
  readonly name: string;
  readonly kind: 'act' | 'read';
  readonly members: Members;
  /** The subject of its job; absent if it takes no longer than a request. */
  readonly job?: (given: unknown, context: Pick<Context, 'access'>) => Subject;
  /** @param given its members, as JSON @throws Refused */
  readonly run: (context: Context, given: unknown) => Promise<Outcome>;
  readonly text: (value: unknown) => string | null;
}

/** Changes something. */
export const act = describing('act');
/** Changes nothing. */
export const reading = describing('read');

function describing(kind: Operation['kind']) {
  return <const Own extends Members = Record<never, never>, Value = unknown>(
    name: string,
    { members = {} as Own, job, run, text, ...description }: Description<Own, Value>,
  ): Operation => {
    const operands = Object.hasOwn(members, 'id') ? ['id'] : [];
    const values = (given: unknown) => readMembers(members, given);
    const shown =
      text ?? ((value) => (description.result === undefined ? null : documentText(Object(value))));
    return {
      operands,
      ...description,
      name,
      kind,
      members,
      ...(job && { job: (given, context) => job(values(given), context) }),
      run: async (context, given) => run(context, values(given)),
      // What an operation prints is what it returned, also after a way through JSON.
      text: (value) => shown(value as Value),
    };
  };
}

/** The name as it stands in an address: `key-create`. */
export const pathOf = ({ name }: Pick<Operation, 'name'>): string => name.replaceAll(' ', '-');

/** Whether only a lab does it. */
export const isOfLab = ({ name }: Pick<Operation, 'name'>): boolean => name.startsWith('lab ');

/** The audit trail notes what is asked for. @returns the request */
export function noted<const Asked extends { readonly kind: string }>({ change }: Context, request: Asked) {
  change((access) => noteOperation(access, request));
  return request;
}

/** @throws Refused `invalid_request` if nothing is to be changed */
export function requireChange(name: string, changes: object): void {
  if (Object.values(changes).some((value) => value !== undefined)) return;
  const detail = `nothing to change: give at least one member. See: wirewatch ${name} --help`;
  throw new Refused('invalid_request', detail);
}
