/** `wirewatch pull --compare`: whether a copy is what the service has, and where not. */
import type { Comparison, Difference } from '../pull/compare.ts';
import { print, table } from './output.ts';

const SHOWN_MAX = 20;

/** Prints what was found; the exit code is 1 where something differs. */
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
          `${counted(changed_since)} changed since the copy was brought up to date, and ${changed_since === 1 ? 'was' : 'were'} not compared.`,
        ];
  const text = () =>
    differences.length === 0
      ? [`The ${counted(detections)} of ${into} are what the service has.`, ...changed].join('\n')
      : [
          shownDifferences(differences),
          `${counted(differences.length)} of ${into}, which has ${number(detections)}, differ from the service.`,
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
  return more > 0 ? `${shown}\nand ${number(more)} more; --json has all of them` : shown;
}

function counted(detections: number): string {
  return `${number(detections)} ${detections === 1 ? 'detection' : 'detections'}`;
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}
