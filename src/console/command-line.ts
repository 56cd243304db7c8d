/** The command that does the same as a form, for `/bin/sh`. Pure. */
import type { OperationForm } from '../operations/table.ts';
import { pasted } from '../setup/shell.ts';

/** @param given members, as JSON or as they were typed @returns its words, each option together with its value */
export function commandWords(
  form: Pick<OperationForm, 'name' | 'operands' | 'members'>,
  given: Readonly<Record<string, unknown>>,
): string[] {
  const { name, operands, members } = form;
  const isGiven = (member: string) => given[member] !== undefined;
  const subjects = operands.filter(isGiven).flatMap((member) => textsOf(given[member]).map(pasted));
  const options = members
    .filter(({ name: member }) => !operands.includes(member) && isGiven(member))
    .flatMap(({ name: member, placeholder, several }) => {
      const flag = `--${member.replaceAll('_', '-')}`;
      const texts = textsOf(given[member]);
      if (placeholder === null) return texts.includes('on') ? [flag] : [];
      return (several === 'repeated' ? texts : [texts.join(',')]).map((text) => option(flag, text));
    });
  // Otherwise it would be read as an option.
  const isOption = subjects.some((text) => text.startsWith('-'));
  return [`wirewatch ${name}`, ...(isOption ? [...options, '--', ...subjects] : [...subjects, ...options])];
}

const option = (flag: string, text: string): string =>
  text.startsWith('-') ? `${flag}=${pasted(text)}` : `${flag} ${pasted(text)}`;

function textsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.length === 0 ? ['none'] : value.flatMap(textsOf);
  if (typeof value === 'boolean') return [value ? 'on' : 'off'];
  return [value === null ? 'none' : String(value)];
}
