/** Every operation, in the order of the help, and the forms that the console makes of them. */
import { ACCOUNTS } from './accounts.ts';
import { AUDIT } from './audit.ts';
import { CONSOLE_OPERATIONS } from './console.ts';
import { COMPACT, INGEST } from './ingest.ts';
import { KEYS } from './keys.ts';
import { LAB } from './lab.ts';
import { type Form, type Operation, pathOf } from './operation.ts';
import { PROCESS_OPERATIONS } from './processes.ts';
import { REMOVALS } from './removal.ts';
import { ALERT_LIST, INGEST_STATUS, STATUS } from './status-views.ts';
import { SUBSCRIPTIONS } from './subscriptions.ts';
import { WINDOWS } from './windows.ts';

export const OPERATIONS: readonly Operation[] = [
  ...ACCOUNTS,
  ...SUBSCRIPTIONS,
  ...REMOVALS,
  ...KEYS,
  ...WINDOWS,
  INGEST_STATUS,
  ...INGEST,
  ALERT_LIST,
  STATUS,
  AUDIT,
  ...CONSOLE_OPERATIONS,
  ...PROCESS_OPERATIONS,
  COMPACT,
  ...LAB,
];

/** @param path as it stands in an address: `key-create` */
export const operationAt = (path: string): Operation | null =>
  OPERATIONS.find((operation) => pathOf(operation) === path) ?? null;

/** The operations of a group of commands, such as `key`, or the one that is a command itself. */
export const operationsOf = (command: string): readonly Operation[] =>
  OPERATIONS.filter(({ name }) => name.split(' ', 1)[0] === command);

/** What the console needs to show an act as a form; it imports the types alone. `isJob`: it may take longer than a request. */
export type OperationForm = Form & ReturnType<typeof formOf>;
/** A member of an operation, as a field of its form. */
export type FormMember = OperationForm['members'][number];

export function operationForms(): readonly OperationForm[] {
  return OPERATIONS.flatMap((operation) =>
    operation.form === undefined ? [] : [{ ...operation.form, ...formOf(operation) }],
  );
}

export function formOf({ name, operands = [], members, job, confirmedBy }: Operation) {
  const fields = Object.entries(members).map(
    ([member, { isRequired: required, hint, placeholder, several, schema }]) => {
      return { name: member, required, hint, placeholder, several, schema };
    },
  );
  return { name, operands, members: fields, isJob: job !== undefined, confirmedBy: confirmedBy ?? null };
}
