/** A rule of the contract, and the test that would fail without it. */

export interface Rule {
  readonly section: string;
  readonly rule: string;
  readonly file: string;
  readonly test: string;
}

/** @param lines `rule | test file | name of the test` */
export function rules(section: string, lines: readonly string[]): Rule[] {
  return lines.map((line) => {
    const [rule, file, test, ...rest] = line.split(' | ');
    if (rule === undefined || file === undefined || test === undefined || rest.length > 0) {
      throw new Error(`${section}: expected "rule | test file | name of the test": ${line}`);
    }
    return { section, rule, file, test };
  });
}
