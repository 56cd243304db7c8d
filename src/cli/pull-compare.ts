/** `wirewatch pull --compare`: whether a copy matches the service, and where it does not. */

import { counted, grouped } from '../counted.ts';
import type { Comparison, Difference } from '../pull/compare.ts';
import { print, table } from './output.ts';

const SHOWN_MAX = 20;

/** Prints the result; sets exit code 1 if there are differences. */
export function printComparison(
  into: string,
  { detections, changed_since, differences }: Comparison,
  json: boolean,
): void {
  if (differences.length > 0) process.exitCode = 1;
  const changed =
    changed_since === 0
      ? []
      : [
          `${counted(changed_since, 'detection')} changed after the copy was updated, and ${changed_since === 1 ? 'was' : 'were'} not compared.`,
        ];
  const text = () =>
    differences.length === 0
      ? [
          `The copy ${into} matches the service: ${counted(detections, 'detection')} compared.`,
          ...changed,
        ].join('\n')
      : [
          shownDifferences(differences),
          `The copy ${into} differs from the service: ${counted(differences.length, 'difference')} in ${counted(detections, 'detection')}.`,
          ...changed,
        ].join('\n');
  print({ into, equal: differences.length === 0, detections, changed_since, differences }, { json, text });
}

function shownDifferences(differences: readonly Difference[]): string {
  const shown = table(differences.slice(0, SHOWN_MAX), [
    { title: 'DETECTION', value: ({ id }) => id },
    { title: 'DIFFERENCE', value: ({ kind }) => kind },
    { title: 'COPY', value: ({ copy_version }) => copy_version, align: 'right' },
    { title: 'SERVICE', value: ({ service_version }) => service_version, align: 'right' },
    { title: 'FIELDS', value: ({ fields }) => (fields.length === 0 ? null : fields.join(', ')) },
  ]);
  const more = differences.length - SHOWN_MAX;
  return more > 0 ? `${shown}\nand ${grouped(more)} more; --json lists all of them` : shown;
}
