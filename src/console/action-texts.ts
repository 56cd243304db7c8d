/** What each action is called, what it will do, in words, and the command that does the same. Pure. */
import type { Action } from '../admin/console/api.ts';
import { clock, dayName, windowName } from './format.ts';

export type Option = readonly [value: string, text: string];

/** Of a form. */
export interface Field {
  readonly name: string;
  readonly label: string;
  /** `checks`: any of the options. */
  readonly type?: 'date' | 'number' | 'datetime-local' | 'checks';
  readonly options?: readonly Option[];
  readonly hint?: string;
  /** What it holds at first. */
  readonly value?: string;
  readonly required?: boolean;
  /** It is given as a list. */
  readonly isList?: boolean;
}

interface ActionText {
  /** On its button. */
  readonly label: string;
  /** What will happen. */
  readonly will: string;
  /** The question, up to what it is done to; else the label. */
  readonly title?: string;
  /** Else its kind says it. */
  readonly command?: string;
  /** It takes something away from somebody. */
  readonly isGrave?: boolean;
  /** What the person gives besides. */
  readonly fields?: readonly Field[];
}

const OVERLAPS = [
  ['7d', 'for 7 more days'],
  ['1d', 'for 1 more day'],
  ['1h', 'for 1 more hour'],
  ['0', 'not at all: it ends now'],
] as const;

export const TEXTS: Readonly<Record<Action['kind'], ActionText>> = {
  'ingest-pause': {
    label: 'Pause ingest',
    will: 'Export files stay in the drop folder until ingest is resumed, also after a restart. Clients go on reading. The file being read is finished first.',
  },
  'ingest-resume': {
    label: 'Resume ingest',
    will: 'Files in the drop folder are read again, the newest windows first.',
  },
  'ingest-replay': {
    label: 'Replay files',
    will: 'The files in archive/ that were first applied between these times are read again; without times, every file is. Detections that come out differently get a new version, which clients receive; equal ones stay as they are.',
    fields: [
      { name: 'from', label: 'First applied from (UTC)', type: 'datetime-local' },
      { name: 'to', label: 'before (UTC)', type: 'datetime-local' },
    ],
  },
  backup: {
    label: 'Back up now',
    will: 'The backup folder is brought up to date. Reads and ingest go on meanwhile.',
    command: 'backup FOLDER',
  },
  scrub: {
    label: 'Verify now',
    will: 'The log is read to its end and the database compared with it. This may take minutes; reads and ingest go on meanwhile.',
    command: 'verify',
  },
  'window-reset': {
    label: 'Reset',
    will: 'The newest held file of the window is read; if none is held, the failed file is read again. Its detections then reach the change stream.',
  },
  'window-accept': {
    label: 'Accept',
    will: 'The held file is read after all. Its detections then reach the change stream.',
  },
  'window-expect': {
    label: 'Expect windows from here',
    title: 'Expect windows only from',
    will: 'Windows before this one are no longer called missing or abandoned. Those from it on are searched for at once.',
  },
  'key-create': {
    label: 'Make a key',
    title: 'Make a key for',
    will: 'The key works at once. It is shown only once.',
    command: 'key create --scopes detections:read --subscriptions NUMBERS --name NAME --account',
  },
  'key-rotate': {
    label: 'Rotate',
    will: 'A new key with the same rights is made and shown only once. The old one goes on working for the time chosen here, then ends. Cursors stay valid.',
    fields: [{ name: 'overlap', label: 'The old key goes on working', options: OVERLAPS }],
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
    will: 'Its keys work again at once. Nothing was lost: clients go on from their cursors.',
  },
};

/** `name` of what it is done to, where the id alone says little. */
export function actionText(action: Action, name = ''): ActionText & { readonly command: string } {
  const text = TEXTS[action.kind];
  const [subject, words] = subjectOf(action, name);
  const { title = text.label, command = action.kind.replace('-', ' ') } = text;
  return {
    ...text,
    title: `${title}${subject && ` ${subject}`}?`,
    command: ['wirewatch', command, ...words].join(' '),
  };
}

/** What it is done to, for a person and for the command. */
function subjectOf(action: Action, name: string): readonly [string, readonly string[]] {
  if ('window_start' in action) {
    const { export: exportName, window_start } = action;
    return [`${exportName}, ${windowName(Date.parse(window_start))}`, [exportName, window_start]];
  }
  const id = 'id' in action ? action.id : 'account' in action ? action.account : '';
  return [name === '' || name === id ? id : `${name} (${id})`, id === '' ? [] : [id]];
}

/** On a button that does not stand beside what it is for. */
export function labelWithSubject(action: Action): string {
  const { label } = TEXTS[action.kind];
  if (!('window_start' in action)) return label;
  const ms = Date.parse(action.window_start);
  return `${label} ${action.export}, ${dayName(ms)} ${clock(ms)}`;
}
