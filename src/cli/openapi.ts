/** `wirewatch openapi`: the machine-readable description of what the appliance serves. */
import type { Command } from 'commander';
import { openApiDocument } from '../openapi/document.ts';
import { addExamples } from './options.ts';
import { print } from './output.ts';

export function register(command: Command): void {
  command.action(() => print(openApiDocument(), { json: true, text: '' }));
  addExamples(command, ['openapi > openapi.json']);
}
