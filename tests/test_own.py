"""A reader's own measurements: every row priced or listed with its reason,
and each mistake in the file said in a sentence.
"""

from io import StringIO

import numpy as np
import pytest

from scalebook import accelerators, confront, decoding, links, models, training_step
from scalebook.inference import serve
from scalebook.measurements import CONFRONTATIONS
from scalebook.measurements.__main__ import main
from scalebook.shell.named import find, things

HEAD = "id,model,device,precision,tp,pp,dp,global_batch,seq,recompute,step_time\n"
ROWS = (
    "a,llama3_70b,h100,bf16,8,4,8,512,8192,none,19.5 s\nb,llama3_70b,h100,bf16,4,8,8,512,8192,,18.1\n"
    "c,llama3_8b,h100,fp8,2,1,8,128,8192,full,4100 ms\n"
)
BAD = "d,llama3_70b,h100,,7,4,8,512,8192,none,20 s\ne,llama3_70b,h100,,8,4,8,512,8192,none,\n"


def own(text, thing=training_step, measured="step_time"):
    return confront(thing, StringIO(text), measured)


def test_each_row_is_the_call_it_names():
    result = own(HEAD + ROWS)
    first = training_step(
        models.llama3_70b, accelerators.h100.at("bf16"), tp=8, pp=4, dp=8, global_batch=512, seq=8192, recompute="none"
    )
    last = training_step(
        models.llama3_8b, accelerators.h100.at("fp8"), tp=2, pp=1, dp=8, global_batch=128, seq=8192, recompute="full"
    )
    assert result.predicted[0] == first.step_time and result.predicted[2] == last.step_time
    assert list(result.measured) == [19.5, 18.1, 4.1]
    assert np.allclose(result.errors, result.predicted / result.measured - 1)
    assert result.groups.keys() == {"llama3_70b h100 bf16", "llama3_8b h100 fp8"} and not result.fitted.any()


def test_rows_without_a_price_are_listed_and_none_is_dropped():
    result = own(HEAD + ROWS + BAD)
    assert [x for x, _ in result.unpriced] == ["d", "e"]
    assert "tp=7 does not divide the 64 heads" in result.unpriced[0][1]
    assert result.unpriced[1][1] == "step_time was not measured"
    assert len(result.rows) + sum(result.left_out.values()) == 5
    assert all(why in repr(result) and why in result._repr_html_() for _, why in result.unpriced)


@pytest.mark.parametrize("model", ["llama3_8b", "gpt_oss_120b", "deepseek_v3"])
def test_a_step_faster_than_the_peak_of_its_device_is_no_measurement(model):
    """By twice, of six operations for each parameter that a token meets."""
    row, device, seq = models[model], accelerators.h100, 128  # hardly anything to attend to
    active = row.active_params if "active_params" in row else row.params
    least = 6 * active * 8 * seq / device.peak_bf16
    rows = [f"{model},h100,8,{seq},{times * least}" for times in (0.5, 2)]
    result = own("\n".join(["model,device,global_batch,seq,step_time", *rows]))
    assert [x["row_id"] for x in result.rows] == ["2"]
    assert "faster than the peak of its device" in result.unpriced[0][1]


def test_the_worst_rows_say_what_they_are_made_of():
    result = own(HEAD + ROWS)
    worst = result.worst(1)[0]
    line = next(x for x in repr(result).partition("worst rows:")[2].splitlines() if x.startswith(worst["id"]))
    assert "step_backward" in line and f"{worst['error']:+.1%}" in line and "tp=" in line and "seq=" not in line
    assert "step_backward" in result._repr_html_() and result._repr_html_().count("<table>") == 2


def test_a_sheet_and_a_formula():
    row = "model,device,batch,context,weight_bits,kv_bits,decode_rate\nllama3_8b,h100,1,8192,16,16,150\n"
    result, known = own(row, decoding, "decode_rate"), dict(batch=1, context=8192, weight_bits=16, kv_bits=16)
    assert result.predicted[0] == decoding(models.llama3_8b, accelerators.h100, **known).decode_rate
    assert "of token_time: memory_time" in repr(result)
    one = own("device,ridge_intensity\nh100,300\nh100,290 FLOP/B\n", find("ridge_intensity"), "ridge_intensity")
    assert one.predicted == pytest.approx([989.4e12 / 3.35e12] * 2)


def test_a_link_is_a_row_too():
    f = find("direct_all_to_all")
    result = own(f"link,ways,collective_bytes,{f.letter}\nnvlink4,8,1 GB,5 ms\n", f, f.letter)
    assert result.predicted[0] == f(links.nvlink4, ways=8, collective_bytes="1 GB")


def test_a_row_that_does_not_fit_says_why():
    heads = "model,device,batch,context,weight_bits,kv_bits,token_time"
    text = f"{heads}\nllama3_70b,h100,1,8192,16,16,1\nllama3_8b,h100,1,8192,16,16,1\n"
    assert (
        "token_time_fitting holds for weights and caches that fit" in own(text, decoding, "token_time").unpriced[0][1]
    )


def test_spaces_a_mark_of_bytes_and_a_path(tmp_path):
    (tmp_path / "mine.csv").write_text("\ufeff" + HEAD.replace(",", " , ") + ROWS.replace(",", ", "), encoding="utf-8")
    for path in (tmp_path / "mine.csv", str(tmp_path / "mine.csv")):
        assert list(confront(training_step, path).predicted) == list(own(HEAD + ROWS).predicted)
    assert list(own("\ufeff" + HEAD.removeprefix("id,") + ROWS.splitlines()[0].removeprefix("a,")).measured) == [19.5]


def test_what_was_measured_beside_it_is_not_given():
    head = "model,device,precision,tp,users,prompt,output,engine"
    row = "llama3_70b,h100,fp8,8,64,1000,300,vllm"
    both = f"{head},tpot,ttft,end_to_end\n{row},12 ms,300 ms,9 s\n"
    for letter, measured in (("tpot", "12 ms"), ("ttft", "300 ms"), ("end_to_end", "9 s")):
        alone = own(f"{head},{letter}\n{row},{measured}\n", serve, letter)
        assert own(both, serve, letter).predicted == alone.predicted


def test_names_of_confrontations_and_of_things_differ():
    assert not CONFRONTATIONS.keys() & things().keys()


def test_the_command(tmp_path, capsys):
    (tmp_path / "mine.csv").write_text(HEAD + ROWS + BAD)
    told = main(["training_step", "--csv", str(tmp_path / "mine.csv"), "--measured", "step_time"])
    assert told.startswith("training_step: ") and told.count("tp=7") == 1 and told.count("worst rows") == 1
    assert main(["training_step", "--csv", str(tmp_path / "mine.csv")]) == told
