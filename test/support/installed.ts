/** Programs that some tests need, and a machine may lack. */
import { spawnSync } from 'node:child_process';

/** The reason to skip a test; false if all of them are installed. @param programs each with arguments before --version */
export function without(...programs: string[]): string | false {
  const isThere = (program: string) => {
    const [command = '', ...args] = program.split(' ');
    return spawnSync(command, [...args, '--version']).status === 0;
  };
  const missing = programs.find((program) => !isThere(program));
  return missing !== undefined && `${missing} is not installed`;
}
