/** What the console needs to show acts as forms, made from the table; it imports the types alone. */
import type { TSchema } from '@sinclair/typebox';
import type { Member } from './member.ts';
import type { Operation } from './operation.ts';
import { OPERATIONS } from './table.ts';

/** A member of an operation, as a field of its form. */
export interface FormMember extends Pick<Member, 'hint' | 'placeholder' | 'several'> {
  readonly name: string;
  readonly required: boolean;
  readonly schema: TSchema;
}

export interface OperationForm extends NonNullable<Operation['form']>, Pick<Operation, 'name' | 'operands'> {
  readonly members: readonly FormMember[];
  /** It may take longer than a request. */
  readonly isJob: boolean;
  /** A person is asked to type a word before it. */
  readonly asks: boolean;
}

/** Every act that the console offers, in the order of the help. */
export function operationForms(): readonly OperationForm[] {
  return OPERATIONS.flatMap(({ form, name, operands, members, job, asks }) => {
    const fields = Object.entries(members).map(
      ([member, { isRequired, hint, placeholder, several, schema }]) => {
        return { name: member, required: isRequired, hint, placeholder, several, schema };
      },
    );
    return form === null ? [] : [{ ...form, name, operands, members: fields, isJob: job !== null, asks }];
  });
}
