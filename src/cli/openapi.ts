/** `wirewatch openapi`: the OpenAPI documents of the API and of the administration. */
import { openApiDocument } from '../openapi/document.ts';
import { toggle } from '../operations/member.ts';
import { adminDocument } from '../operations/openapi.ts';
import { defineCommand } from './command.ts';

export const register = defineCommand({
  members: { admin: toggle('the document of the administration API') },
  examples: ['openapi > openapi.json', 'openapi --admin > openapi-admin.json'],
  run({ admin = false }) {
    const value = admin ? adminDocument() : openApiDocument();
    return { value, text: JSON.stringify(value, null, 2) };
  },
});
