// A multi-turn conversation: its messages, with tool calls and their results folded.

const said = (content) => (content === null || content === undefined ? "" : typeof content === "string" ? content
  : Array.isArray(content) ? content.map((part) => part?.text ?? `[${part?.type ?? "?"}]`).join("") : JSON.stringify(content));
const callText = ({ arguments: given }) => (given === null || given === undefined ? "" : typeof given === "string" ? given : JSON.stringify(given, null, 1));
const shortened = (text, most = 60) => (text.length > most ? `${text.slice(0, most)}…` : text).replace(/\s+/g, " ");

const folded = (kind, label, text, name) => h("details", { class: `turn ${kind}` },
  h("summary", {}, h("span", { class: "who", text: label }), h("code", { text: ` ${shortened(text)}` })), h("pre", { text, tabindex: 0, "aria-label": name }));
const open = (kind, label, text) => h("div", { class: `turn ${kind}` }, h("span", { class: "who", text: label }), h("pre", { text }));

/** The messages of a conversation after the prompt. */
function turnsView(sample) {
  const turns = sample.messages.slice(sample.asked ?? 0).flatMap((message) => {
    const role = message?.role ?? "?", text = said(message?.content).trim(), model = role === "assistant";
    const thought = said(message?.reasoning_content).trim();
    const calls = (message?.tool_calls ?? []).map((call) => call?.function ?? call ?? {});
    return [
      thought && folded("model", "thought", thought, "Reasoning of the model"),
      (text || !calls.length) && (role === "tool" ? folded("context", message.name ? `result of ${message.name}` : "result", text, "Result of a tool") : open(model ? "model" : "context", role, text)),
      ...calls.map((call) => folded("model", `call of ${call.name ?? "?"}`, callText(call), "Arguments of a call")),
    ].filter(Boolean);
  });
  return h("div", { class: "turns", role: "group", "aria-label": "Conversation, turn by turn" }, turns);
}
