/** The words of a text, so that a long list of names takes few lines. */
export function words(text: string): string[] {
  return text.match(/\S+/g) ?? [];
}
