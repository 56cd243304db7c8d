/** The texts of one action: its question, and the command that does the same. Pure. */
import { ACTIONS, type ActionDescription } from '../admin/console/action-table.ts';
import type { Action } from '../admin/console/api.ts';
import { clock, dayName, windowName } from './format.ts';

/** @param name of its subject, where the id alone says little */
export function actionText(action: Action, name = ''): ActionDescription & { readonly command: string } {
  const text: ActionDescription = ACTIONS[action.kind];
  const [subject, words] = subjectOf(action, name);
  const { title = text.label, command = action.kind.replace('-', ' ') } = text;
  return {
    ...text,
    title: `${title}${subject && ` ${subject}`}?`,
    command: ['wirewatch', command, ...words].join(' '),
  };
}

/** The subject of an action, for a person and for the command. */
function subjectOf(action: Action, name: string): readonly [string, readonly string[]] {
  if ('window_start' in action) {
    const { export: exportName, window_start } = action;
    return [`${exportName}, ${windowName(Date.parse(window_start))}`, [exportName, window_start]];
  }
  const id = 'id' in action ? action.id : 'account' in action ? action.account : '';
  return [name === '' || name === id ? id : `${name} (${id})`, id === '' ? [] : [id]];
}

/** For a button that is not shown beside its subject. */
export function labelWithSubject(action: Action): string {
  const { label } = ACTIONS[action.kind];
  if (!('window_start' in action)) return label;
  const ms = Date.parse(action.window_start);
  return `${label} ${action.export}, ${dayName(ms)} ${clock(ms)}`;
}
