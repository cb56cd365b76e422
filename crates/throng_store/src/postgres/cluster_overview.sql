-- What operators see of hand-offs in flight: where a player comes from, and since when.
ALTER TABLE cluster_player ADD COLUMN given_by INTEGER;
ALTER TABLE cluster_player ADD COLUMN given_ms BIGINT NOT NULL DEFAULT 0;
COMMENT ON COLUMN cluster_player.given_by IS 'the node that owned it before; NULL: nobody';
COMMENT ON COLUMN cluster_player.given_ms IS 'the last change of the owner, Unix time of the server; for operators only';
CREATE OR REPLACE FUNCTION cluster_give(_player BIGINT, _node INTEGER, _run BIGINT) RETURNS VOID LANGUAGE sql AS
    'UPDATE cluster_player SET given_by = node, given_ms = cluster_now_ms(NULL), node = _node, run = _run, epoch = epoch + 1,
        is_adopted = FALSE WHERE player = _player';
