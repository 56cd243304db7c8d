/**
 * The actions of the console, each described once for its server and its app. Only types are imported, so both halves
 * can use it.
 */
import type { Action } from './api.ts';

export type Option = readonly [value: string, text: string];

/** A field of a form. */
export interface Field {
  readonly name: string;
  readonly label: string;
  /** `checks`: a checkbox for each option. */
  readonly type?: 'date' | 'number' | 'datetime-local' | 'checks';
  readonly options?: readonly Option[];
  readonly hint?: string;
  /** Initial value. */
  readonly value?: string;
  readonly required?: boolean;
  /** Its text is sent as a list. */
  readonly isList?: boolean;
}

export interface ActionDescription {
  /** Text of its button. */
  readonly label: string;
  /** What will happen, shown before it is confirmed. */
  readonly will: string;
  /** The question, without its subject; default: the label. */
  readonly title?: string;
  /** The command that does the same; default: the words of its kind. */
  readonly command?: string;
  /** It takes access away from a client. */
  readonly isGrave?: boolean;
  /** It takes longer than a request, so it becomes a job. */
  readonly isJob?: boolean;
  /** Members of its body that the person enters. */
  readonly fields?: readonly Field[];
}

const OVERLAPS = [
  ['7d', 'for 7 more days'],
  ['1d', 'for 1 more day'],
  ['1h', 'for 1 more hour'],
  ['0', 'not at all: it ends now'],
] as const;

export const ACTIONS = {
  'ingest-pause': {
    label: 'Pause ingest',
    will: 'Export files stay in the drop folder until ingest is resumed, also after a restart. Clients can still read. The file being read is finished first.',
  },
  'ingest-resume': {
    label: 'Resume ingest',
    will: 'Files in the drop folder are read again, the newest windows first.',
  },
  'ingest-replay': {
    label: 'Replay files',
    will: 'The files in archive/ that were first applied between these times are read again; without times, every file is. Detections that differ get a new version, which clients receive; equal ones stay unchanged.',
    fields: [
      { name: 'from', label: 'First applied from (UTC)', type: 'datetime-local' },
      { name: 'to', label: 'before (UTC)', type: 'datetime-local' },
    ],
    isJob: true,
  },
  backup: {
    label: 'Back up now',
    will: 'The backup folder is updated. Reads and ingest continue.',
    command: 'backup FOLDER',
    isJob: true,
  },
  scrub: {
    label: 'Verify now',
    will: 'The log is read to its end and the database compared with it. This may take minutes; reads and ingest continue.',
    command: 'verify',
    isJob: true,
  },
  'window-reset': {
    label: 'Reset',
    will: 'The newest held file of the window is read; if none is held, the failed file is read again. Its detections then reach the change stream.',
    isJob: true,
  },
  'window-accept': {
    label: 'Accept',
    will: 'The held file is read after all. Its detections then reach the change stream.',
    isJob: true,
  },
  'window-expect': {
    label: 'Expect windows from here',
    title: 'Expect windows only from',
    will: 'Windows before this one no longer count as missing or abandoned. Later ones are checked at once.',
    isJob: true,
  },
  'key-create': {
    label: 'Make a key',
    title: 'Make a key for',
    will: 'The key works at once. It is shown only once.',
    command: 'key create --scopes detections:read --subscriptions NUMBERS --name NAME --account',
  },
  'key-rotate': {
    label: 'Rotate',
    will: 'A new key with the same rights is made and shown only once. The old one keeps working for the time chosen here, then ends. Cursors stay valid.',
    fields: [{ name: 'overlap', label: 'The old key keeps working', options: OVERLAPS }],
  },
  'key-revoke': {
    label: 'Revoke',
    will: 'Requests with this key, and with its access tokens, are refused from now on (401). This cannot be undone.',
    isGrave: true,
  },
  'account-suspend': {
    label: 'Suspend account',
    will: 'Every request with one of its keys is refused (403) until the account is resumed. Its detections are still recorded.',
    isGrave: true,
  },
  'account-resume': {
    label: 'Resume account',
    will: 'Its keys work again at once. Nothing was lost: clients continue from their cursors.',
  },
} as const satisfies Readonly<Record<Action['kind'], ActionDescription>>;

/** Actions that become jobs. */
export type JobKind = {
  [Kind in Action['kind']]: (typeof ACTIONS)[Kind] extends { readonly isJob: true } ? Kind : never;
}[Action['kind']];
