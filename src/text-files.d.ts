/** Files imported as text, `with { type: 'text' }`. */
declare module '*/client-ts' {
  const text: string;
  export default text;
}
declare module '*/mail-alert' {
  const text: string;
  export default text;
}
declare module '*/client-py' {
  const text: string;
  export default text;
}
declare module '*.conf' {
  const text: string;
  export default text;
}
declare module '*.sh' {
  const text: string;
  export default text;
}
declare module '*.yml' {
  const text: string;
  export default text;
}
declare module '*.service' {
  const text: string;
  export default text;
}
