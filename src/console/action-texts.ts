/** What each action is called, what it will do, in words, and the command that does the same. Pure. */
import type { Action } from '../admin/console/api.ts';
import { windowName } from './format.ts';

export interface ActionText {
  /** On its button. */
  readonly label: string;
  /** The question's title. */
  readonly title: string;
  /** What will happen. */
  readonly will: string;
  /** It takes something away from somebody. */
  readonly isGrave?: boolean;
  readonly command: string;
}

type Of<Kind extends Action['kind']> = Extract<Action, { readonly kind: Kind }>;

/** `name` of what it is done to, where the id alone says little. */
export function actionText(action: Action, name = ''): ActionText {
  switch (action.kind) {
    case 'window-reset':
    case 'window-accept':
    case 'window-expect':
      return windowText(action);
    case 'key-create':
    case 'key-rotate':
    case 'key-revoke':
      return keyText(action, name);
    case 'account-suspend':
    case 'account-resume':
      return accountText(action, name);
    default:
      return APPLIANCE[action.kind];
  }
}

const APPLIANCE: Readonly<
  Record<'ingest-pause' | 'ingest-resume' | 'ingest-replay' | 'backup' | 'scrub', ActionText>
> = {
  'ingest-pause': {
    label: 'Pause ingest',
    title: 'Pause ingest?',
    will: 'Export files stay in the drop folder until ingest is resumed, also after a restart. Clients go on reading. The file being read is finished first.',
    command: 'wirewatch ingest pause',
  },
  'ingest-resume': {
    label: 'Resume ingest',
    title: 'Resume ingest?',
    will: 'Files in the drop folder are read again, the newest windows first.',
    command: 'wirewatch ingest resume',
  },
  'ingest-replay': {
    label: 'Replay files',
    title: 'Replay archived files?',
    will: 'The files in archive/ are read again. Detections that come out differently get a new version, which clients receive; equal ones stay as they are.',
    command: 'wirewatch ingest replay',
  },
  backup: {
    label: 'Back up now',
    title: 'Run a backup?',
    will: 'The backup folder is brought up to date. Reads and ingest go on meanwhile.',
    command: 'wirewatch backup FOLDER',
  },
  scrub: {
    label: 'Verify now',
    title: 'Verify the database?',
    will: 'The log is read to its end and the database compared with it. This may take minutes; reads and ingest go on meanwhile.',
    command: 'wirewatch verify',
  },
};

function windowText(action: Of<'window-reset' | 'window-accept' | 'window-expect'>): ActionText {
  const { export: exportName, window_start } = action;
  const name = `${exportName}, ${windowName(Date.parse(window_start))}`;
  const verb = action.kind.slice('window-'.length);
  const command = `wirewatch window ${verb} ${exportName} ${window_start}`;
  if (action.kind === 'window-reset')
    return {
      label: 'Reset',
      title: 'Reset this window?',
      will: `The newest held file of the window is read; if none is held, the failed file is read again (${name}). Its detections then reach the change stream.`,
      command,
    };
  if (action.kind === 'window-accept')
    return {
      label: 'Accept',
      title: 'Accept the file of this abandoned window?',
      will: `The held file is read after all (${name}). Its detections then reach the change stream.`,
      command,
    };
  return {
    label: 'Expect windows from here',
    title: `Expect windows of ${exportName} from here on?`,
    will: `Windows before this one are no longer called missing or abandoned (${name}). Those from it on are searched for at once.`,
    command,
  };
}

function keyText(action: Of<'key-create' | 'key-rotate' | 'key-revoke'>, name: string): ActionText {
  if (action.kind === 'key-create')
    return {
      label: 'Make a key',
      title: `Make a key for ${name || action.account}`,
      will: 'The key works at once. It is shown only once.',
      command: `wirewatch key create --account ${action.account} --scopes detections:read --subscriptions NUMBERS --name NAME`,
    };
  const which = name === '' ? action.id : `${name} (${action.id})`;
  if (action.kind === 'key-rotate')
    return {
      label: 'Rotate',
      title: `Rotate the key ${which}?`,
      will: 'A new key with the same rights is made and shown only once. The old one goes on working for the time chosen here, then ends. Cursors stay valid.',
      command: `wirewatch key rotate ${action.id}`,
    };
  return {
    label: 'Revoke',
    title: `Revoke the key ${which}?`,
    will: 'Requests with this key, and with its access tokens, are refused from now on (401). This cannot be undone.',
    isGrave: true,
    command: `wirewatch key revoke ${action.id}`,
  };
}

function accountText({ kind, id }: Of<'account-suspend' | 'account-resume'>, name: string): ActionText {
  const which = name || id;
  if (kind === 'account-resume')
    return {
      label: 'Resume account',
      title: `Resume the account ${which}?`,
      will: 'Its keys work again at once. Nothing was lost: clients go on from their cursors.',
      command: `wirewatch account resume ${id}`,
    };
  return {
    label: 'Suspend account',
    title: `Suspend the account ${which}?`,
    will: 'Every request with one of its keys is refused (403) until the account is resumed. Its detections are still recorded.',
    isGrave: true,
    command: `wirewatch account suspend ${id}`,
  };
}
